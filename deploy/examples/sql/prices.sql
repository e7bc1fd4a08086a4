-- What is sold, and at what price on average: on a terminal a table that keeps up with the orders, until Ctrl-C.
--
--   caudal sql deploy/examples/sql/prices.sql

SET 'auto.offset.reset' = 'earliest';

SELECT item,
       AVG(price_cents) / 100 AS average_price,
       SUM(quantity) AS sold
FROM orders
GROUP BY item
EMIT CHANGES;
