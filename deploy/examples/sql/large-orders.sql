-- Orders worth more than 300, each as it comes, in a topic of their own; and those of now that can be asked for by key.
--
--   caudal sql deploy/examples/sql/large-orders.sql
--   caudal sql -e "SELECT * FROM sold WHERE item = 'canoe';"

SET 'auto.offset.reset' = 'earliest';

CREATE STREAM IF NOT EXISTS large_orders WITH (KAFKA_TOPIC = 'large-orders', VALUE_FORMAT = 'JSON') AS
SELECT id, UCASE(customer) AS customer, item, quantity * price_cents / 100 AS worth
FROM orders
WHERE quantity * price_cents > 30000;

CREATE TABLE IF NOT EXISTS sold WITH (KAFKA_TOPIC = 'sold', VALUE_FORMAT = 'JSON') AS
SELECT item, COUNT(*) AS orders, SUM(quantity) AS quantity
FROM orders
GROUP BY item;
