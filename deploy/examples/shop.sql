-- The database of the shop: where it delivers to, and its orders. May be run again and again.
--
--   sqlite3 caudal-platform/shop.db < deploy/examples/shop.sql
--
-- Iceland is left out on purpose: an order from there is refused, becomes a dead letter of the connector
-- orders-to-sql, and can be sent through it again once the shop delivers there, too.

CREATE TABLE IF NOT EXISTS countries (code TEXT PRIMARY KEY, name TEXT NOT NULL);

INSERT OR IGNORE INTO countries VALUES ('ES', 'Spain'), ('FR', 'France'), ('PT', 'Portugal');
DELETE FROM countries WHERE code = 'IS';

CREATE TABLE IF NOT EXISTS orders (
    id          INTEGER PRIMARY KEY,
    customer    TEXT    NOT NULL,
    item        TEXT    NOT NULL,
    quantity    INTEGER NOT NULL,
    price_cents INTEGER NOT NULL,
    country     TEXT    NOT NULL
);

CREATE TRIGGER IF NOT EXISTS orders_go_where_we_deliver
BEFORE INSERT ON orders
WHEN NEW.country NOT IN (SELECT code FROM countries)
BEGIN
    SELECT RAISE(ABORT, 'the shop does not deliver to this country');
END;
