-- A file of format 1, as rank1 0.1 wrote it. Every later version must open it.
PRAGMA application_id = 1919839025;
PRAGMA journal_mode = wal;
BEGIN;
CREATE TABLE rank1_studies (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        uid TEXT NOT NULL UNIQUE,
        created REAL NOT NULL,
        retired REAL
    ) STRICT;
CREATE TABLE rank1_events (
        study INTEGER NOT NULL REFERENCES rank1_studies,
        seq INTEGER NOT NULL,
        at REAL NOT NULL,
        kind INTEGER NOT NULL,
        "row" INTEGER NOT NULL,
        "column" INTEGER NOT NULL,
        tag INTEGER NOT NULL,
        suggestion INTEGER NOT NULL,
        value REAL,
        nonce INTEGER NOT NULL,
        key TEXT,
        position INTEGER NOT NULL,
        unit TEXT,
        data TEXT,
        PRIMARY KEY (study, seq)
    ) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX rank1_outcomes ON rank1_events (study, suggestion, kind)
        WHERE suggestion > 0;
CREATE UNIQUE INDEX rank1_keys ON rank1_events (study, key, position) WHERE key IS NOT NULL;
CREATE INDEX rank1_units ON rank1_events (study, unit, seq) WHERE unit IS NOT NULL;
CREATE TABLE rank1_snapshots (
        study INTEGER NOT NULL REFERENCES rank1_studies,
        seq INTEGER NOT NULL,
        layout TEXT NOT NULL,
        blob BLOB NOT NULL,
        digest BLOB NOT NULL,
        PRIMARY KEY (study, seq)
    ) STRICT;
INSERT INTO rank1_studies VALUES (1, 'spring', 'cacq2e', 1794768909.1349235, 1794768909.1621225);
INSERT INTO rank1_studies VALUES (2, 'Zoë', 'enq2dp', 1794768909.1699922, NULL);
INSERT INTO rank1_events VALUES (1, 1, 1794768909.1349235, 1, 0, 0, 0, 0, NULL, 25769, NULL, 0, NULL, '{"rows": ["a", "b"], "columns": ["\u65e5\u672c"]}');
INSERT INTO rank1_events VALUES (1, 2, 1794768909.1501927, 2, 4095, 7, 9223372036854775807, 0, 0.125, 5, 'k', 0, 'Zoë', NULL);
INSERT INTO rank1_events VALUES (1, 3, 1794768909.1501927, 2, 2, 4095, -9223372036854775808, 0, NULL, 1048575, 'k', 1, 'u', NULL);
INSERT INTO rank1_events VALUES (1, 4, 1794768909.1501927, 7, 1, 1, 40, 0, -1e+300, 1, NULL, 0, NULL, NULL);
INSERT INTO rank1_events VALUES (1, 5, 1794768909.1501927, 6, 0, 0, 2, 0, NULL, 2, NULL, 0, NULL, '{"added": "\u0000"}');
INSERT INTO rank1_events VALUES (1, 6, 1794768909.1501927, 2, 0, 0, 0, 0, 9e999, 3, NULL, 0, NULL, NULL);
INSERT INTO rank1_events VALUES (1, 7, 1794768909.1501927, 2, 0, 0, 0, 0, NULL, 4, NULL, 0, NULL, NULL);
INSERT INTO rank1_events VALUES (1, 8, 1794768909.1539288, 3, 0, 0, 0, 2, 5e-324, 6, NULL, 0, NULL, NULL);
INSERT INTO rank1_events VALUES (1, 9, 1794768909.1539288, 4, 0, 0, 0, 3, NULL, 7, NULL, 0, NULL, NULL);
INSERT INTO rank1_events VALUES (1, 10, 1794768909.1539288, 5, 0, 0, 1, 6, 0.0, 8, NULL, 0, NULL, NULL);
INSERT INTO rank1_events VALUES (1, 11, 1794768909.1539288, 3, 0, 0, 1, 6, 0.30000000000000004, 9, NULL, 0, NULL, NULL);
INSERT INTO rank1_events VALUES (1, 12, 1794768909.1621225, 8, 0, 0, 0, 0, NULL, 211994, NULL, 0, NULL, NULL);
INSERT INTO rank1_events VALUES (2, 1, 1794768909.1699922, 1, 0, 0, 0, 0, NULL, 517410, NULL, 0, NULL, '{}');
INSERT INTO rank1_snapshots VALUES (1, 7, 'one', X'7374617465', X'72EC0A379D0903AAB9BEF482C4D24BC2');
PRAGMA user_version = 1;
COMMIT;
