-- How many orders each country sends in an hour: a table that is kept up to date from now on, in the topic orders-per-hour.
-- The connector orders-per-hour-to-spark makes a table of Spark of it: so the key is among the values, too.
--
--   caudal sql deploy/examples/sql/orders-per-hour.sql

SET 'auto.offset.reset' = 'earliest';

CREATE TABLE IF NOT EXISTS orders_per_hour
WITH (KAFKA_TOPIC = 'orders-per-hour', KEY_FORMAT = 'JSON', VALUE_FORMAT = 'AVRO') AS
SELECT country,
       AS_VALUE(country) AS goes_to,
       WINDOWSTART AS hour_ms,
       COUNT(*) AS orders,
       SUM(quantity * price_cents) / 100.0 AS revenue
FROM orders
WINDOW TUMBLING (SIZE 1 HOUR)
GROUP BY country;
