CREATE TABLE chat (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  title      TEXT    NOT NULL,
  created_ms INTEGER NOT NULL,
  updated_ms INTEGER NOT NULL,
  system     TEXT,
  model      TEXT,
  model_path BLOB,
  leaf       INTEGER
);
CREATE INDEX chat_by_time ON chat (updated_ms);

CREATE TABLE message (
  id                INTEGER PRIMARY KEY,
  chat              INTEGER NOT NULL REFERENCES chat (id) ON DELETE CASCADE,
  no                INTEGER NOT NULL,
  parent            INTEGER,
  role              TEXT    NOT NULL,
  text              TEXT    NOT NULL,
  thinking_len      INTEGER NOT NULL,
  created_ms        INTEGER NOT NULL,
  stop              TEXT,
  tokens            BLOB,
  tokens_text_len   INTEGER,
  author_model      TEXT,
  author_vocabulary TEXT,
  sampling          TEXT,
  sampling_changes  TEXT,
  stats             TEXT,
  UNIQUE (chat, no)
);

-- What a reply grew by while it streams; it moves into the message when the reply ends.
CREATE TABLE growth (
  id              INTEGER PRIMARY KEY,
  message         INTEGER NOT NULL REFERENCES message (id) ON DELETE CASCADE,
  text            TEXT    NOT NULL,
  thinking_len    INTEGER NOT NULL,
  tokens          BLOB    NOT NULL,
  tokens_text_len INTEGER NOT NULL
);
CREATE INDEX growth_by_message ON growth (message);
