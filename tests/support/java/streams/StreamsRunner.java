import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;

/**
 * Runs topologies of Kafka Streams, one after the other. Each line of its input is a command: {@code {"id": ...,
 * "topology": ..., "parameters": {...}}} starts one, whose topics begin with its id, and an empty line stops it. It
 * answers each with one line.
 */
public final class StreamsRunner {
    private static final Duration PATIENCE = Duration.ofSeconds(60);

    public static void main(String[] arguments) throws Exception {
        ObjectMapper json = new ObjectMapper();
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        KafkaStreams running = null;
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            if (running != null) {
                running.close(PATIENCE);
                running.cleanUp();
                running = null;
            }
            if (!line.isBlank()) {
                running = start(json.readTree(line), arguments[0], arguments[1]);
            }
            System.out.println(running == null ? "stopped" : "running");
        }
        if (running != null) {
            running.close(PATIENCE);
        }
    }

    private static KafkaStreams start(JsonNode command, String bootstrap, String folder) throws InterruptedException {
        String id = command.get("id").asText();
        Topology topology = Topologies.named(command.get("topology").asText(), id, command.get("parameters"));
        KafkaStreams streams = new KafkaStreams(topology, settings(id, bootstrap, folder));
        CountDownLatch isRunning = new CountDownLatch(1);
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.RUNNING) {
                isRunning.countDown();
            }
        });
        streams.start();
        if (!isRunning.await(PATIENCE.toSeconds(), TimeUnit.SECONDS)) {
            throw new IllegalStateException("the topology does not start: " + streams.state());
        }
        return streams;
    }

    private static Properties settings(String id, String bootstrap, String folder) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, id);
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, folder);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, JsonSerde.class);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        // Every change comes out, not only the last one of some time.
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        // Rows without a partner come out as soon as the time of the stream allows, not a second later by the clock.
        settings.put("__emit.interval.ms.kstreams.outer.join.spurious.results.fix__", 0L);
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        return settings;
    }
}
