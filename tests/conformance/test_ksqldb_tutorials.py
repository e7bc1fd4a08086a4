"""What the tutorials of ksqlDB build, with statements as users send them, and the results that they show."""

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

import httpx2
import pytest

from tests.support.broker import BrokerProcess
from tests.support.patience import eventually
from tests.support.registry import RegistryProcess
from tests.support.streams_process import StreamsProcess

_TIMEOUT_S: Final = 120.0
_V1: Final = "application/vnd.ksql.v1+json"
pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("ksqldb-tutorials")]


class Session:
    """A user's session: it begins with every record, and leaves nothing behind."""

    def __init__(self, client: httpx2.Client) -> None:
        self._client = client

    def run(self, text: str) -> list[Any]:
        """Send statements."""
        body = {"ksql": text, "streamsProperties": {"auto.offset.reset": "earliest"}}
        answer = self._client.post("/ksql", json=body)
        assert answer.status_code == 200, answer.json()["message"]
        entities: list[Any] = answer.json()
        return entities

    def rows(self, select: str) -> list[list[Any]]:
        """The rows of a query that ends by itself."""
        body = {"ksql": select, "streamsProperties": {"auto.offset.reset": "earliest"}}
        answer = self._client.post("/query", json=body, headers={"Accept": _V1})
        assert answer.status_code == 200, answer.json()["message"]
        errors = [one for one in answer.json() if "errorMessage" in one]
        assert not errors, errors
        return [one["row"]["columns"] for one in answer.json() if "row" in one]

    def until(self, select: str, accept: Callable[[list[list[Any]]], bool]) -> list[list[Any]]:
        """The sorted rows of a pull query, as soon as they are right."""
        return eventually(lambda: sorted(self.rows(select), key=json.dumps), accept, timeout_s=_TIMEOUT_S, pause_s=0.5)

    def becomes(self, select: str, expected: list[list[Any]]) -> None:
        """A pull query has these rows in the end, in any order."""
        wanted = sorted(expected, key=json.dumps)
        self.until(select, lambda rows: rows == wanted)


@pytest.fixture(scope="module")
def streams(registry: RegistryProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StreamsProcess]:
    """A server in front of a broker that keeps records of years ago, as the tutorials have them."""
    folder = tmp_path_factory.mktemp("tutorials")
    with (
        BrokerProcess(folder / "broker", settings={"log.retention.ms": "-1"}) as broker,
        StreamsProcess(folder / "streams", bootstrap=broker.bootstrap, registry=registry.url) as process,
    ):
        yield process


@pytest.fixture
def session(streams: StreamsProcess) -> Iterator[Session]:
    with httpx2.Client(base_url=streams.url, timeout=_TIMEOUT_S) as client:
        yield Session(client)
        client.post("/ksql/terminate", json={"deleteTopicList": [".*"]})


def test_quick_start(session: Session) -> None:
    """Riders: the latest place of each, those near a point, and who they are."""
    session.run(
        """
        CREATE STREAM riderLocations (profileId VARCHAR, latitude DOUBLE, longitude DOUBLE)
          WITH (kafka_topic='locations', value_format='json', partitions=1);
        CREATE TABLE currentLocation AS
          SELECT profileId, LATEST_BY_OFFSET(latitude) AS la, LATEST_BY_OFFSET(longitude) AS lo
          FROM riderLocations GROUP BY profileId EMIT CHANGES;
        CREATE TABLE ridersNearMountainView AS
          SELECT ROUND(GEO_DISTANCE(la, lo, 37.4133, -122.1162), -1) AS distanceInMiles,
                 COLLECT_LIST(profileId) AS riders, COUNT(*) AS count
          FROM currentLocation GROUP BY ROUND(GEO_DISTANCE(la, lo, 37.4133, -122.1162), -1);
        INSERT INTO riderLocations (profileId, latitude, longitude) VALUES ('c2309eec', 37.7877, -122.4205);
        INSERT INTO riderLocations (profileId, latitude, longitude) VALUES ('18f4ea86', 37.3903, -122.0643);
        INSERT INTO riderLocations (profileId, latitude, longitude) VALUES ('4ab5cbad', 37.3952, -122.0813);
        INSERT INTO riderLocations (profileId, latitude, longitude) VALUES ('8b6eae59', 37.3944, -122.0813);
        INSERT INTO riderLocations (profileId, latitude, longitude) VALUES ('4a7c7b41', 37.4049, -122.0822);
        INSERT INTO riderLocations (profileId, latitude, longitude) VALUES ('4ddad000', 37.7857, -122.4011);
        """
    )
    near = session.until(
        "SELECT * FROM ridersNearMountainView WHERE distanceInMiles <= 10;", lambda rows: sum(r[2] for r in rows) == 4
    )
    assert {rider for row in near for rider in row[1]} == {"18f4ea86", "4ab5cbad", "8b6eae59", "4a7c7b41"}
    nearby = "WHERE GEO_DISTANCE(latitude, longitude, 37.4133, -122.1162) <= 5"
    rows = session.rows(f"SELECT profileId FROM riderLocations {nearby} EMIT CHANGES LIMIT 3;")
    assert rows == [["4ab5cbad"], ["8b6eae59"], ["4a7c7b41"]]


def test_materialized_cache(session: Session) -> None:
    """Calls to a centre: how many different reasons a caller had, and how long calls took."""
    session.run(
        """
        CREATE STREAM calls (name VARCHAR, reason VARCHAR, duration_seconds INT)
          WITH (kafka_topic='call-center', value_format='AVRO', partitions=1);
        CREATE TABLE support_view AS
          SELECT name, COUNT_DISTINCT(reason) AS distinct_reasons, LATEST_BY_OFFSET(reason) AS last_reason
          FROM calls GROUP BY name EMIT CHANGES;
        CREATE TABLE lifetime_view AS
          SELECT name, COUNT(reason) AS total_calls, (SUM(duration_seconds) / 60) AS minutes_engaged
          FROM calls GROUP BY name EMIT CHANGES;
        INSERT INTO calls VALUES ('michael', 'purchase', 540);
        INSERT INTO calls VALUES ('michael', 'help', 224);
        INSERT INTO calls VALUES ('derek', 'refund', 360);
        INSERT INTO calls VALUES ('michael', 'help', 802);
        INSERT INTO calls VALUES ('colin', 'help', 1);
        """
    )
    session.becomes("SELECT * FROM support_view WHERE name = 'michael';", [["michael", 2, "help"]])
    session.becomes(
        "SELECT * FROM lifetime_view WHERE name IN ('michael', 'colin');", [["colin", 1, 0], ["michael", 3, 26]]
    )


def test_streaming_etl(session: Session) -> None:
    """Orders get the names of their customers, and are joined with their shipments."""
    session.run(
        """
        CREATE TABLE customers (id VARCHAR PRIMARY KEY, name VARCHAR, age INT)
          WITH (kafka_topic='customers', value_format='json', partitions=1);
        CREATE STREAM orders (order_id VARCHAR KEY, customer_id VARCHAR, price DOUBLE, ts BIGINT)
          WITH (kafka_topic='orders', value_format='json', partitions=1, timestamp='ts');
        CREATE STREAM shipments (shipment_id VARCHAR KEY, order_id VARCHAR, origin VARCHAR, ts BIGINT)
          WITH (kafka_topic='shipments', value_format='json', partitions=1, timestamp='ts');
        CREATE STREAM enriched_orders AS
          SELECT o.order_id AS order_id, o.customer_id AS customer_id, c.name AS customer_name, o.price AS price
          FROM orders AS o LEFT JOIN customers c ON o.customer_id = c.id
          PARTITION BY o.order_id EMIT CHANGES;
        INSERT INTO customers VALUES ('5', 'jane', 30);
        INSERT INTO customers VALUES ('7', 'bob', 56);
        """
    )
    session.run(
        """
        INSERT INTO orders VALUES ('o1', '5', 3.5, 1592181000000);
        INSERT INTO orders VALUES ('o2', '7', 7.25, 1592181060000);
        CREATE STREAM shipped_orders WITH (kafka_topic='shipped') AS
          SELECT o.order_id AS order_id, o.customer_name AS customer_name, s.shipment_id AS shipment_id,
                 s.origin AS origin
          FROM enriched_orders AS o INNER JOIN shipments s WITHIN 7 DAYS ON s.order_id = o.order_id EMIT CHANGES;
        INSERT INTO shipments VALUES ('s1', 'o1', 'Chicago', 1592185000000);
        INSERT INTO shipments VALUES ('s2', 'o9', 'Denver', 1592185000000);
        """
    )
    rows = session.rows("SELECT order_id, customer_name, shipment_id, origin FROM shipped_orders EMIT CHANGES LIMIT 1;")
    assert rows == [["o1", "jane", "s1", "Chicago"]]


def test_event_driven_microservice(session: Session) -> None:
    """Cards that are used too often within half a minute."""
    session.run(
        """
        CREATE STREAM transactions (
            tx_id VARCHAR KEY, email_address VARCHAR, card_number VARCHAR, timestamp VARCHAR, amount DECIMAL(12, 2)
        ) WITH (
            kafka_topic='transactions', partitions=8, value_format='avro',
            timestamp='timestamp', timestamp_format='yyyy-MM-dd''T''HH:mm:ss'
        );
        CREATE TABLE possible_anomalies WITH (kafka_topic='possible_anomalies', value_format='avro') AS
          SELECT card_number AS card_number_key, AS_VALUE(card_number) AS card_number,
                 LATEST_BY_OFFSET(email_address) AS email_address, COUNT(*) AS n_attempts, SUM(amount) AS total_amount,
                 COLLECT_LIST(tx_id) AS tx_ids, WINDOWSTART AS start_boundary, WINDOWEND AS end_boundary
          FROM transactions WINDOW TUMBLING (SIZE 30 SECONDS, RETENTION 1000 DAYS)
          GROUP BY card_number HAVING COUNT(*) >= 3 EMIT CHANGES;
        INSERT INTO transactions VALUES ('t1', 'm@example.com', '358579699', '2020-04-22T03:00:00', 403.00);
        INSERT INTO transactions VALUES ('t2', 'd@example.com', '352642227', '2020-04-22T03:00:00', 50.00);
        INSERT INTO transactions VALUES ('t3', 'd@example.com', '352642227', '2020-04-22T03:00:10', 40.50);
        INSERT INTO transactions VALUES ('t4', 'd@example.com', '352642227', '2020-04-22T03:00:20', 9.50);
        INSERT INTO transactions VALUES ('t5', 'd@example.com', '352642227', '2020-04-22T03:00:40', 1.00);
        """
    )
    (row,) = session.until(
        "SELECT card_number, n_attempts, total_amount, start_boundary, end_boundary, tx_ids FROM possible_anomalies;",
        lambda rows: len(rows) == 1 and rows[0][1] == 3,
    )
    assert row[:5] == ["352642227", 3, 100.0, 1587524400000, 1587524430000]
    assert sorted(row[5]) == ["t2", "t3", "t4"]


def test_filter_a_stream(session: Session) -> None:
    """The books of one author."""
    session.run(
        """
        CREATE STREAM all_publications (bookid BIGINT KEY, author VARCHAR, title VARCHAR)
          WITH (kafka_topic='publication_events', partitions=1, value_format='avro');
        INSERT INTO all_publications VALUES (0, 'C.S. Lewis', 'The Silver Chair');
        INSERT INTO all_publications VALUES (1, 'George R. R. Martin', 'A Song of Ice and Fire');
        INSERT INTO all_publications VALUES (2, 'C.S. Lewis', 'Perelandra');
        INSERT INTO all_publications VALUES (3, 'George R. R. Martin', 'Fire & Blood');
        CREATE STREAM george_martin WITH (kafka_topic='george_martin_books', partitions=1) AS
          SELECT * FROM all_publications WHERE author = 'George R. R. Martin';
        """
    )
    rows = session.rows("SELECT bookid, title FROM george_martin EMIT CHANGES LIMIT 2;")
    assert rows == [[1, "A Song of Ice and Fire"], [3, "Fire & Blood"]]


def test_split_a_stream(session: Session) -> None:
    """Dramas, fantasies and the rest go to topics of their own."""
    session.run(
        """
        CREATE STREAM actingevents (name VARCHAR, title VARCHAR, genre VARCHAR)
          WITH (kafka_topic='acting-events', partitions=1, value_format='avro');
        INSERT INTO actingevents VALUES ('Bill Murray', 'Ghostbusters', 'fantasy');
        INSERT INTO actingevents VALUES ('Christian Bale', 'The Dark Knight', 'crime');
        INSERT INTO actingevents VALUES ('Diane Keaton', 'The Godfather: Part II', 'crime');
        INSERT INTO actingevents VALUES ('Jennifer Aniston', 'Office Space', 'comedy');
        INSERT INTO actingevents VALUES ('Judy Garland', 'The Wizard of Oz', 'fantasy');
        INSERT INTO actingevents VALUES ('Jack Nicholson', 'The Shining', 'horror');
        CREATE STREAM actingevents_crime AS SELECT name, title FROM actingevents WHERE genre = 'crime';
        CREATE STREAM actingevents_fantasy AS SELECT name, title FROM actingevents WHERE genre = 'fantasy';
        CREATE STREAM actingevents_other AS
          SELECT name, title, genre FROM actingevents WHERE NOT genre IN ('crime', 'fantasy');
        """
    )
    assert session.rows("SELECT name FROM actingevents_crime EMIT CHANGES LIMIT 2;") == [
        ["Christian Bale"],
        ["Diane Keaton"],
    ]
    assert session.rows("SELECT title FROM actingevents_fantasy EMIT CHANGES LIMIT 2;") == [
        ["Ghostbusters"],
        ["The Wizard of Oz"],
    ]
    assert session.rows("SELECT genre FROM actingevents_other EMIT CHANGES LIMIT 2;") == [["comedy"], ["horror"]]


def test_merge_streams(session: Session) -> None:
    """Two kinds of songs become one stream that says where each comes from."""
    session.run(
        """
        CREATE STREAM rock_songs (artist VARCHAR, title VARCHAR)
          WITH (kafka_topic='rock_songs', partitions=1, value_format='avro');
        CREATE STREAM classical_songs (artist VARCHAR, title VARCHAR)
          WITH (kafka_topic='classical_songs', partitions=1, value_format='avro');
        CREATE STREAM all_songs (artist VARCHAR, title VARCHAR, genre VARCHAR)
          WITH (kafka_topic='all_songs', partitions=1, value_format='avro');
        INSERT INTO all_songs SELECT artist, title, 'rock' AS genre FROM rock_songs;
        INSERT INTO all_songs SELECT artist, title, 'classical' AS genre FROM classical_songs;
        INSERT INTO rock_songs VALUES ('Metallica', 'Fade to Black');
        INSERT INTO classical_songs VALUES ('Wolfgang Amadeus Mozart', 'The Magic Flute');
        INSERT INTO rock_songs VALUES ('Van Halen', 'Jump');
        """
    )
    rows = session.rows("SELECT artist, title, genre FROM all_songs EMIT CHANGES LIMIT 3;")
    assert sorted(rows) == [
        ["Metallica", "Fade to Black", "rock"],
        ["Van Halen", "Jump", "rock"],
        ["Wolfgang Amadeus Mozart", "The Magic Flute", "classical"],
    ]


def test_transform_a_stream(session: Session) -> None:
    """The title and the year of a movie were one text."""
    session.run(
        """
        CREATE STREAM raw_movies (id INT KEY, title VARCHAR, genre VARCHAR)
          WITH (kafka_topic='movies', partitions=1, value_format='avro');
        INSERT INTO raw_movies VALUES (294, 'Die Hard::1988', 'action');
        INSERT INTO raw_movies VALUES (354, 'Tree of Life::2011', 'drama');
        CREATE STREAM movies WITH (kafka_topic='parsed_movies', partitions=1) AS
          SELECT id, SPLIT(title, '::')[1] AS title, CAST(SPLIT(title, '::')[2] AS INT) AS year, UCASE(genre) AS genre
          FROM raw_movies;
        """
    )
    rows = session.rows("SELECT id, title, year, genre FROM movies EMIT CHANGES LIMIT 2;")
    assert rows == [[294, "Die Hard", 1988, "ACTION"], [354, "Tree of Life", 2011, "DRAMA"]]


def test_count_in_tumbling_windows(session: Session) -> None:
    """Ratings of movies by six hours of their own time."""
    session.run(
        """
        CREATE STREAM ratings (title VARCHAR, release_year INT, rating DOUBLE, timestamp VARCHAR)
          WITH (kafka_topic='ratings', timestamp='timestamp', timestamp_format='yyyy-MM-dd HH:mm:ss',
                partitions=1, value_format='avro');
        CREATE TABLE rating_count WITH (kafka_topic='rating_count') AS
          SELECT title, COUNT(*) AS rating_count, WINDOWSTART AS window_start, WINDOWEND AS window_end
          FROM ratings WINDOW TUMBLING (SIZE 6 HOURS) GROUP BY title;
        INSERT INTO ratings VALUES ('Die Hard', 1998, 8.2, '2019-04-25 01:00:00');
        INSERT INTO ratings VALUES ('Die Hard', 1998, 4.5, '2019-04-25 05:00:00');
        INSERT INTO ratings VALUES ('Die Hard', 1998, 5.1, '2019-04-25 07:00:00');
        INSERT INTO ratings VALUES ('Tree of Life', 2011, 4.9, '2019-04-25 09:00:00');
        """
    )
    day = 1556150400000  # 2019-04-25
    hours = 3_600_000
    session.becomes(
        "SELECT title, rating_count, window_start, window_end FROM rating_count;",
        [
            ["Die Hard", 2, day, day + 6 * hours],
            ["Die Hard", 1, day + 6 * hours, day + 12 * hours],
            ["Tree of Life", 1, day + 6 * hours, day + 12 * hours],
        ],
    )


def test_join_a_stream_with_a_table(session: Session) -> None:
    """Ratings learn the titles of the movies."""
    session.run(
        """
        CREATE TABLE lead_movies (id INT PRIMARY KEY, title VARCHAR, release_year INT)
          WITH (kafka_topic='lead_movies', partitions=1, value_format='avro');
        CREATE STREAM movie_ratings (movie_id INT KEY, rating DOUBLE)
          WITH (kafka_topic='movie_ratings', partitions=1, value_format='avro');
        INSERT INTO lead_movies VALUES (294, 'Die Hard', 1998);
        INSERT INTO lead_movies VALUES (354, 'Tree of Life', 2011);
        CREATE STREAM rated_movies WITH (kafka_topic='rated_movies') AS
          SELECT movie_ratings.movie_id AS id, title, rating
          FROM movie_ratings LEFT JOIN lead_movies ON movie_ratings.movie_id = lead_movies.id;
        INSERT INTO movie_ratings VALUES (294, 8.2);
        INSERT INTO movie_ratings VALUES (354, 9.9);
        INSERT INTO movie_ratings VALUES (999, 1.0);
        """
    )
    rows = session.rows("SELECT id, title, rating FROM rated_movies EMIT CHANGES LIMIT 3;")
    assert rows == [[294, "Die Hard", 8.2], [354, "Tree of Life", 9.9], [999, None, 1.0]]


def test_session_windows(session: Session) -> None:
    """Clicks of an address belong together while less than five minutes lie between them."""
    session.run(
        """
        CREATE STREAM clicks (ip VARCHAR, url VARCHAR, timestamp VARCHAR)
          WITH (kafka_topic='clicks', timestamp='timestamp', timestamp_format='yyyy-MM-dd''T''HH:mm:ss',
                partitions=1, value_format='avro');
        CREATE TABLE ip_sessions AS
          SELECT ip, COUNT(ip) AS click_count, WINDOWEND - WINDOWSTART AS length_ms
          FROM clicks WINDOW SESSION (5 MINUTES) GROUP BY ip;
        INSERT INTO clicks VALUES ('51.56.119.117', '/a', '2020-01-17T10:00:00');
        INSERT INTO clicks VALUES ('51.56.119.117', '/b', '2020-01-17T10:02:00');
        INSERT INTO clicks VALUES ('53.170.33.192', '/c', '2020-01-17T10:03:00');
        INSERT INTO clicks VALUES ('51.56.119.117', '/d', '2020-01-17T10:20:00');
        """
    )
    session.becomes(
        "SELECT ip, click_count, length_ms FROM ip_sessions;",
        [["51.56.119.117", 2, 120_000], ["51.56.119.117", 1, 0], ["53.170.33.192", 1, 0]],
    )


def test_sum_and_extremes(session: Session) -> None:
    """What tickets have brought in by title, and the best and the worst year."""
    session.run(
        """
        CREATE STREAM movie_ticket_sales (title VARCHAR, sale_year INT, ticket_total_value INT)
          WITH (kafka_topic='movie-ticket-sales', partitions=1, value_format='avro');
        CREATE TABLE movie_revenue AS
          SELECT title, SUM(ticket_total_value) AS total_value FROM movie_ticket_sales GROUP BY title;
        CREATE TABLE movie_figures AS
          SELECT sale_year, MIN(ticket_total_value) AS least, MAX(ticket_total_value) AS most, COUNT(*) AS tickets
          FROM movie_ticket_sales GROUP BY sale_year;
        INSERT INTO movie_ticket_sales VALUES ('Aliens', 2019, 10);
        INSERT INTO movie_ticket_sales VALUES ('Die Hard', 2019, 12);
        INSERT INTO movie_ticket_sales VALUES ('Die Hard', 2019, 12);
        INSERT INTO movie_ticket_sales VALUES ('Aliens', 2020, 18);
        """
    )
    session.becomes("SELECT * FROM movie_revenue;", [["Aliens", 28], ["Die Hard", 24]])
    session.becomes("SELECT * FROM movie_figures;", [[2019, 10, 12, 3], [2020, 18, 18, 1]])
