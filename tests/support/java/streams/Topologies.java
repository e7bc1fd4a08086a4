import java.time.Duration;
import java.util.Arrays;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.ValueJoiner;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.state.KeyValueStore;

/** The topologies: keys are texts, values objects of JSON, and all write the topic {@code <id>-out}. */
final class Topologies {
    private final StreamsBuilder builder = new StreamsBuilder();
    private final String id;
    private final JsonNode parameters;
    private final Serde<String> text = Serdes.String();
    private final Serde<JsonNode> json = new JsonSerde();

    private Topologies(String id, JsonNode parameters) {
        this.id = id;
        this.parameters = parameters;
    }

    static Topology named(String name, String id, JsonNode parameters) {
        Topologies made = new Topologies(id, parameters);
        switch (name) {
            case "word-count" -> made.wordCount();
            case "windowed-count" -> made.windowedCount();
            case "session-count" -> made.sessionCount();
            case "stream-stream" -> made.streamStream();
            case "stream-table" -> made.streamTable();
            case "table-table" -> made.tableTable();
            case "foreign-key" -> made.foreignKey();
            case "table-aggregate" -> made.tableAggregate();
            default -> throw new IllegalArgumentException(name);
        }
        return made.builder.build();
    }

    private void wordCount() {
        stream("lines")
            .flatMapValues(line -> Arrays.asList(line.get("LINE").asText().split(" ")))
            .groupBy((key, word) -> word, Grouped.with(text, text))
            .count()
            .toStream()
            .mapValues(Topologies::count)
            .to(id + "-out", Produced.with(text, json));
    }

    private void windowedCount() {
        TimeWindows windows = TimeWindows.ofSizeAndGrace(duration("size_ms"), duration("grace_ms"));
        if (parameters.has("advance_ms")) {
            windows = windows.advanceBy(duration("advance_ms"));
        }
        KTable<Windowed<String>, Long> counts = stream("clicks").groupByKey().windowedBy(windows).count();
        if (isFinal()) {
            counts = counts.suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded()));
        }
        Serde<Windowed<String>> keys = WindowedSerdes.timeWindowedSerdeFrom(String.class, windows.sizeMs);
        counts.toStream().mapValues(Topologies::count).to(id + "-out", Produced.with(keys, json));
    }

    private void sessionCount() {
        SessionWindows windows = SessionWindows.ofInactivityGapAndGrace(duration("gap_ms"), duration("grace_ms"));
        KTable<Windowed<String>, Long> counts = stream("clicks").groupByKey().windowedBy(windows).count();
        if (isFinal()) {
            counts = counts.suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded()));
        }
        Serde<Windowed<String>> keys = WindowedSerdes.sessionWindowedSerdeFrom(String.class);
        counts.toStream().mapValues(Topologies::count).to(id + "-out", Produced.with(keys, json));
    }

    private void streamStream() {
        KStream<String, JsonNode> left = stream("left");
        KStream<String, JsonNode> right = stream("right");
        JoinWindows windows = JoinWindows.ofTimeDifferenceAndGrace(duration("within_ms"), duration("grace_ms"));
        StreamJoined<String, JsonNode, JsonNode> how = StreamJoined.with(text, json, json);
        KStream<String, JsonNode> joined = switch (kind()) {
            case "inner" -> left.join(right, Topologies::both, windows, how);
            case "left" -> left.leftJoin(right, Topologies::both, windows, how);
            default -> left.outerJoin(right, Topologies::both, windows, how);
        };
        joined.to(id + "-out");
    }

    private void streamTable() {
        KStream<String, JsonNode> left = stream("left");
        KTable<String, JsonNode> right = builder.table(id + "-right");
        KStream<String, JsonNode> joined =
            kind().equals("inner") ? left.join(right, Topologies::both) : left.leftJoin(right, Topologies::both);
        joined.to(id + "-out");
    }

    private void tableTable() {
        KTable<String, JsonNode> left = builder.table(id + "-left");
        KTable<String, JsonNode> right = builder.table(id + "-right");
        KTable<String, JsonNode> joined = switch (kind()) {
            case "inner" -> left.join(right, Topologies::both);
            case "left" -> left.leftJoin(right, Topologies::both);
            default -> left.outerJoin(right, Topologies::both);
        };
        joined.toStream().to(id + "-out");
    }

    private void foreignKey() {
        KTable<String, JsonNode> left = builder.table(id + "-left");
        KTable<String, JsonNode> right = builder.table(id + "-right");
        ValueJoiner<JsonNode, JsonNode, JsonNode> joiner = Topologies::both;
        Materialized<String, JsonNode, KeyValueStore<Bytes, byte[]>> store = Materialized.with(text, json);
        KTable<String, JsonNode> joined = kind().equals("inner")
            ? left.join(right, Topologies::reference, joiner, store)
            : left.leftJoin(right, Topologies::reference, joiner, store);
        joined.toStream().to(id + "-out");
    }

    private void tableAggregate() {
        KTable<String, JsonNode> people = builder.table(id + "-people");
        people
            .groupBy((key, value) -> KeyValue.pair(value.get("REGION").asText(), value), Grouped.with(text, json))
            .aggregate(
                () -> totals(0, 0),
                (region, value, before) -> totals(before.get("N").asLong() + 1, sum(before) + amount(value)),
                (region, value, before) -> totals(before.get("N").asLong() - 1, sum(before) - amount(value)),
                Materialized.with(text, json))
            .toStream()
            .to(id + "-out");
    }

    private KStream<String, JsonNode> stream(String topic) {
        return builder.stream(id + "-" + topic, Consumed.with(text, json));
    }

    private Duration duration(String name) {
        return Duration.ofMillis(parameters.get(name).asLong());
    }

    private String kind() {
        return parameters.get("kind").asText();
    }

    private boolean isFinal() {
        return parameters.path("is_final").asBoolean();
    }

    private static JsonNode count(Long number) {
        return number == null ? null : JsonNodeFactory.instance.objectNode().put("N", number);
    }

    private static String reference(JsonNode left) {
        JsonNode found = left.get("F");
        return found == null || found.isNull() ? null : found.asText();
    }

    /** The values of both sides: V of the left one, W of the right one. */
    private static JsonNode both(JsonNode left, JsonNode right) {
        ObjectNode joined = JsonNodeFactory.instance.objectNode();
        joined.set("V", left == null ? null : left.get("V"));
        joined.set("W", right == null ? null : right.get("W"));
        return joined;
    }

    private static JsonNode totals(long number, long sum) {
        return JsonNodeFactory.instance.objectNode().put("N", number).put("S", sum);
    }

    private static long sum(JsonNode totals) {
        return totals.get("S").asLong();
    }

    private static long amount(JsonNode value) {
        return value.get("AMOUNT").asLong();
    }
}
