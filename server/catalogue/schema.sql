-- The catalogue of Pages/. Everything here follows from the bundles.

CREATE TABLE bundle (
    id      INTEGER PRIMARY KEY,
    domain  TEXT    NOT NULL,  -- the folder in Pages/
    name    TEXT    NOT NULL,  -- the file in it
    job     TEXT    NOT NULL,
    created INTEGER NOT NULL,  -- seconds since 1970, UTC
    size    INTEGER NOT NULL,  -- bytes of the file
    sha256  BLOB    NOT NULL,  -- of the file
    pages   INTEGER NOT NULL,
    UNIQUE (domain, name)
);

-- In the order of the bundles, so that new rows go to the end of the table; only the index below is filled at random.
CREATE TABLE page (
    bundle       INTEGER NOT NULL REFERENCES bundle (id) ON DELETE CASCADE,
    position     INTEGER NOT NULL,  -- in the manifest
    digest       BLOB    NOT NULL,  -- of the url
    url          TEXT    NOT NULL,
    folder       TEXT    NOT NULL,  -- in the bundle
    data_name    TEXT    NOT NULL,
    size         INTEGER NOT NULL,  -- bytes of the body
    sha1         BLOB    NOT NULL,  -- of the body
    crawl_time   REAL    NOT NULL,  -- seconds since 1970, UTC
    status       INTEGER NOT NULL,
    content_type TEXT    NOT NULL,
    PRIMARY KEY (bundle, position)
) WITHOUT ROWID;

CREATE INDEX page_digest ON page (digest);
