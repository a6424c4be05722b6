"""Tables of cases, written from the specifications; the tests that go through them are elsewhere."""
