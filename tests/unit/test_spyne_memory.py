"""A message that is answered is gone, also if it was a bad one; nobody has to search for it."""

import gc
import io
import weakref
from typing import Any

import pytest

from common.wire import Receipt
from server.urlserver.service import BadRequest
from server.urlserver.soap import application
from server.urlserver.spyne_memory import let_go_of_messages
from tests.urlserver import envelope

JOB = '<getJob xmlns="urn:pavouk:urlserver:1"><ident>a</ident></getJob>'
REPORT = '<sendAllData xmlns="urn:pavouk:urlserver:1"><ident>a</ident><job>1</job></sendAllData>'


class Service:
    """As much as is called here."""

    def get_job(self, client: str, request: str, wanted: int) -> None:
        raise BadRequest("no")

    def send_all_data(self, client: str, address: str, report: object) -> Receipt:
        return Receipt(1, 2, 3)


@pytest.mark.parametrize(
    ("body", "status"),
    [(envelope(REPORT), "200"), (envelope(JOB), "500"), (envelope("<nothing/>"), "500"), (b"<half", "500")],
)
def test_a_message_is_gone_once_it_is_answered(body: bytes, status: str) -> None:
    app, contexts, answers = application(Service(), 1 << 20), list[Any](), list[str]()  # type: ignore[arg-type]
    let_go_of_messages(app)
    app.app.event_manager.add_listener("method_context_closed", lambda context: contexts.append(weakref.ref(context)))
    environ = {
        "REQUEST_METHOD": "POST", "CONTENT_TYPE": "text/xml; charset=utf-8", "CONTENT_LENGTH": str(len(body)),
        "PATH_INFO": "/", "QUERY_STRING": "", "SERVER_NAME": "localhost", "SERVER_PORT": "80", "REMOTE_ADDR": "::1",
        "wsgi.url_scheme": "http", "wsgi.input": io.BytesIO(body),
    }  # fmt: skip
    gc.disable()
    try:
        answer = b"".join(app(environ, lambda status, headers: answers.append(status)))
        assert [context() for context in contexts] == [None]
    finally:
        gc.enable()
    assert b"Envelope>" in answer
    assert answers[0].startswith(status)
