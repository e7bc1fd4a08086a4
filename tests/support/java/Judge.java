import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Runs checks (public static methods without parameters) of one class: {@code Judge bootstrap Class [check...]}. */
public final class Judge {
    static String bootstrap;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        Set<String> wanted = new HashSet<>(Arrays.asList(arguments).subList(2, arguments.length));
        int failures = 0;
        Method[] methods = Class.forName(arguments[1]).getDeclaredMethods();
        Arrays.sort(methods, Comparator.comparing(Method::getName));
        for (Method method : methods) {
            boolean isCheck = Modifier.isPublic(method.getModifiers()) && method.getParameterCount() == 0;
            if (isCheck && (wanted.isEmpty() || wanted.contains(method.getName()))) failures += run(method) ? 0 : 1;
        }
        System.out.flush();
        Runtime.getRuntime().halt(failures == 0 ? 0 : 1);
    }

    private static boolean run(Method check) throws IllegalAccessException {
        long start = System.nanoTime();
        try {
            check.invoke(null);
            System.out.println("PASS " + check.getName() + " " + (System.nanoTime() - start) / 1_000_000 + " ms");
            return true;
        } catch (InvocationTargetException failure) {
            System.out.println("FAIL " + check.getName() + ": " + failure.getCause());
            failure.getCause().printStackTrace(System.out);
            return false;
        }
    }

    // ---- asserting ----

    static void same(Object expected, Object actual) {
        if (!Objects.equals(expected, actual)) throw new AssertionError("expected " + expected + " but was " + actual);
    }

    static void that(boolean holds, String claim) {
        if (!holds) throw new AssertionError(claim);
    }

    /** Runs the action, which must fail with the given kind of exception (wrapped or not). */
    static void fails(Class<? extends Throwable> kind, Callable<?> action) {
        Throwable thrown = null;
        try {
            action.call();
        } catch (Throwable problem) {
            thrown = problem;
        }
        that(thrown != null, "nothing was thrown, expected " + kind.getSimpleName());
        for (Throwable cause = thrown; cause != null; cause = cause.getCause()) if (kind.isInstance(cause)) return;
        throw new AssertionError("expected " + kind.getSimpleName() + " but was " + thrown, thrown);
    }

    /** Waits up to 20 s until the condition holds. */
    static void eventually(String claim, Callable<Boolean> condition) throws Exception {
        long deadline = System.currentTimeMillis() + 20_000;
        while (!condition.call()) {
            that(System.currentTimeMillis() < deadline, "never happened: " + claim);
            Thread.sleep(50);
        }
    }

    // ---- clients ----

    static Map<String, Object> config(Object... pairs) {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", bootstrap);
        config.put("default.api.timeout.ms", 20_000);
        config.put("request.timeout.ms", 15_000);
        for (int at = 0; at < pairs.length; at += 2) config.put((String) pairs[at], pairs[at + 1]);
        return config;
    }

    static Admin admin(Object... pairs) {
        return Admin.create(config(pairs));
    }

    static KafkaProducer<String, String> producer(Object... pairs) {
        Map<String, Object> config = config(pairs);
        config.remove("default.api.timeout.ms");
        config.putIfAbsent("max.block.ms", 20_000);
        return new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
    }

    static KafkaProducer<String, String> transactional(String id, Object... pairs) {
        List<Object> all = new ArrayList<>(Arrays.asList("transactional.id", id));
        all.addAll(Arrays.asList(pairs));
        return producer(all.toArray());
    }

    static KafkaConsumer<String, String> consumer(Object... pairs) {
        Map<String, Object> config = config(pairs);
        config.putIfAbsent("auto.offset.reset", "earliest");
        config.putIfAbsent("enable.auto.commit", "false");
        return new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
    }

    // ---- topics and records ----

    static String unique(String prefix) {
        return prefix + "-" + UUID.randomUUID().toString().substring(0, 8);
    }

    static String topic(int partitions) throws Exception {
        return topic(partitions, Collections.emptyMap());
    }

    static String topic(int partitions, Map<String, String> configs) throws Exception {
        String name = unique("java");
        Map<String, String> all = new HashMap<>(configs);
        all.putIfAbsent("retention.ms", "-1"); // some checks send records of the past
        try (Admin admin = admin()) {
            admin.createTopics(List.of(new NewTopic(name, partitions, (short) 1).configs(all))).all().get();
        }
        return name;
    }

    static List<TopicPartition> partitions(String topic, int count) {
        List<TopicPartition> partitions = new ArrayList<>();
        for (int index = 0; index < count; index++) partitions.add(new TopicPartition(topic, index));
        return partitions;
    }

    static void send(KafkaProducer<String, String> producer, String topic, int partition, String... values)
            throws ExecutionException, InterruptedException {
        for (String value : values) producer.send(new ProducerRecord<>(topic, partition, null, value));
        producer.flush();
    }

    /** Everything between the beginning and the end of the topic, as the isolation level sees it. */
    static List<ConsumerRecord<String, String>> readAll(String topic, int partitions, String isolation) {
        List<ConsumerRecord<String, String>> found = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = consumer("isolation.level", isolation)) {
            List<TopicPartition> all = partitions(topic, partitions);
            consumer.assign(all);
            consumer.seekToBeginning(all);
            Map<TopicPartition, Long> ends = consumer.endOffsets(all);
            long deadline = System.currentTimeMillis() + 30_000;
            while (!all.stream().allMatch(p -> consumer.position(p) >= ends.get(p))) {
                that(System.currentTimeMillis() < deadline, "the end of " + topic + " is never reached: " + ends);
                consumer.poll(Duration.ofMillis(200)).forEach(found::add);
            }
        }
        return found;
    }

    static List<String> values(String topic, int partitions, String isolation) {
        List<String> values = new ArrayList<>();
        readAll(topic, partitions, isolation).forEach(record -> values.add(record.value()));
        return values;
    }

    static String text(byte[] bytes) {
        return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
    }
}
