import java.time.Duration;
import java.util.*;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;

/** Consumers in threads, and the checks that both group protocols must pass. */
final class Groups {

    /** One consumer of a group, polling in its own thread until it is closed. */
    static final class Member implements AutoCloseable, ConsumerRebalanceListener {
        final KafkaConsumer<String, String> consumer;
        final List<String> seen = Collections.synchronizedList(new ArrayList<>());
        volatile Set<TopicPartition> owned = Set.of();
        volatile int rebalances;
        volatile Throwable failure;
        private volatile boolean stopping;
        private final Thread thread = new Thread(this::run);

        Member(String topic, String group, Object... pairs) {
            this(group, pairs);
            consumer.subscribe(List.of(topic), this);
            thread.start();
        }

        Member(String group, Object... pairs) {
            List<Object> all = new ArrayList<>(Arrays.asList("group.id", group));
            all.addAll(Arrays.asList(pairs));
            if (!all.contains("consumer")) all.addAll(List.of("heartbeat.interval.ms", 200));
            consumer = Judge.consumer(all.toArray());
        }

        Member start() {
            thread.start();
            return this;
        }

        private void run() {
            try {
                while (!stopping) {
                    consumer.poll(Duration.ofMillis(100)).forEach(record -> seen.add(record.value()));
                    owned = Set.copyOf(consumer.assignment());
                }
            } catch (WakeupException closed) {
                // close() asked for it
            } catch (Throwable problem) {
                failure = problem;
            }
            consumer.close();
        }

        @Override public void onPartitionsAssigned(Collection<TopicPartition> partitions) { rebalances++; }

        @Override public void onPartitionsRevoked(Collection<TopicPartition> partitions) { }

        @Override public void close() throws InterruptedException {
            stopping = true;
            consumer.wakeup();
            thread.join(30_000);
            Judge.that(!thread.isAlive(), "the consumer closes");
        }
    }

    static void shares(Object... pairs) throws Exception {
        String topic = Judge.topic(6), group = Judge.unique("group");
        Set<TopicPartition> all = Set.copyOf(Judge.partitions(topic, 6));
        try (Member first = new Member(topic, group, pairs); KafkaProducer<String, String> producer = Judge.producer()) {
            Judge.eventually("one has all", () -> first.owned.equals(all));
            Member second = new Member(topic, group, pairs), third = new Member(topic, group, pairs);
            Judge.eventually("two each", () -> List.of(first, second, third).stream().allMatch(m -> m.owned.size() == 2));
            Set<TopicPartition> union = new HashSet<>(first.owned);
            union.addAll(second.owned);
            union.addAll(third.owned);
            Judge.same(all, union);
            for (int index = 0; index < 6; index++) Judge.send(producer, topic, index, "v" + index);
            Judge.eventually("all seen", () -> first.seen.size() + second.seen.size() + third.seen.size() >= 6);
            third.close();
            Judge.eventually("three each", () -> first.owned.size() == 3 && second.owned.size() == 3);
            second.close();
            Judge.eventually("one has all again", () -> first.owned.equals(all));
            for (Member member : List.of(first, second, third)) Judge.same(null, member.failure);
        }
    }

    static void commits(Object... pairs) throws Exception {
        String topic = Judge.topic(2), group = Judge.unique("group");
        TopicPartition first = new TopicPartition(topic, 0), second = new TopicPartition(topic, 1);
        List<Object> all = new ArrayList<>(Arrays.asList("group.id", group));
        all.addAll(Arrays.asList(pairs));
        try (KafkaProducer<String, String> producer = Judge.producer()) {
            Judge.send(producer, topic, 0, "a", "b", "c");
        }
        try (KafkaConsumer<String, String> consumer = Judge.consumer(all.toArray())) {
            consumer.subscribe(List.of(topic));
            List<String> seen = new ArrayList<>();
            Judge.eventually("three records", () -> {
                consumer.poll(Duration.ofMillis(200)).forEach(record -> seen.add(record.value()));
                return seen.size() == 3;
            });
            consumer.commitSync(Map.of(first, new OffsetAndMetadata(2, Optional.of(0), "note")));
            CompletableFuture<Exception> answered = new CompletableFuture<>();
            consumer.commitAsync(Map.of(second, new OffsetAndMetadata(0)), (offsets, problem) -> answered.complete(problem));
            Judge.eventually("the asynchronous commit is answered", () -> {
                consumer.poll(Duration.ofMillis(50));
                return answered.isDone();
            });
            Judge.same(null, answered.get(1, TimeUnit.SECONDS));
            Judge.same(new OffsetAndMetadata(2, Optional.of(0), "note"), consumer.committed(Set.of(first)).get(first));
        }
        try (KafkaConsumer<String, String> consumer = Judge.consumer(all.toArray())) {
            consumer.subscribe(List.of(topic));
            List<String> seen = new ArrayList<>();
            Judge.eventually("only the last record", () -> {
                consumer.poll(Duration.ofMillis(200)).forEach(record -> seen.add(record.value()));
                return !seen.isEmpty();
            });
            Judge.same(List.of("c"), seen);
        }
    }
}
