import java.time.Duration;
import java.util.*;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.errors.*;

/** What the admin client learned between 3.0 and 3.9, and the producer: which records of a batch are at fault. */
public final class AdminChecks {

    public static void topicsAreDescribedAndDeletedByNameAndId() throws Exception {
        String name = Judge.topic(3);
        try (Admin admin = Judge.admin()) {
            TopicDescription byName = admin.describeTopics(List.of(name),
                new DescribeTopicsOptions().includeAuthorizedOperations(true)).allTopicNames().get().get(name);
            TopicCollection ids = TopicCollection.ofTopicIds(List.of(byName.topicId()));
            TopicDescription byId = admin.describeTopics(ids).allTopicIds().get().get(byName.topicId());
            Judge.same(name, byId.name());
            Judge.same(3, byId.partitions().size());
            Judge.that(byName.partitions().get(0).leader().id() >= 0, "led");
            Judge.fails(UnknownTopicIdException.class,
                () -> admin.describeTopics(TopicCollection.ofTopicIds(List.of(Uuid.randomUuid()))).allTopicIds().get());
            Judge.fails(UnknownTopicOrPartitionException.class, () -> admin.describeTopics(List.of("not-there")).allTopicNames().get());
            admin.deleteTopics(ids).all().get();
            Judge.fails(UnknownTopicIdException.class, () -> admin.deleteTopics(ids).all().get());
        }
    }

    public static void everyOffsetSpecIsAnswered() throws Exception {
        String topic = Judge.topic(1);
        TopicPartition partition = new TopicPartition(topic, 0);
        try (Admin admin = Judge.admin(); KafkaProducer<String, String> producer = Judge.producer()) {
            Judge.same(-1L, offset(admin, partition, OffsetSpec.maxTimestamp()).offset());
            long[] times = {10, 50, 30, 20};
            for (long time : times) {
                producer.send(new ProducerRecord<>(topic, 0, 1_700_000_000_000L + time, null, "v")).get();
            }
            Judge.same(0L, offset(admin, partition, OffsetSpec.earliest()).offset());
            Judge.same(4L, offset(admin, partition, OffsetSpec.latest()).offset());
            Judge.same(1L, offset(admin, partition, OffsetSpec.maxTimestamp()).offset());
            Judge.same(1_700_000_000_050L, offset(admin, partition, OffsetSpec.maxTimestamp()).timestamp());
            Judge.same(1L, offset(admin, partition, OffsetSpec.forTimestamp(1_700_000_000_011L)).offset());
            Judge.same(-1L, offset(admin, partition, OffsetSpec.forTimestamp(1_700_000_000_051L)).offset());
            Judge.same(0L, offset(admin, partition, OffsetSpec.earliestLocal()).offset());
            Judge.same(-1L, offset(admin, partition, OffsetSpec.latestTiered()).offset());
        }
    }

    static ListOffsetsResult.ListOffsetsResultInfo offset(Admin admin, TopicPartition partition, OffsetSpec spec) throws Exception {
        return admin.listOffsets(Map.of(partition, spec)).all().get().get(partition);
    }

    public static void partitionMovesToAnotherLogDirectory() throws Exception {
        String topic = Judge.topic(1);
        TopicPartitionReplica replica = new TopicPartitionReplica(topic, 0, 1);
        try (Admin admin = Judge.admin(); KafkaProducer<String, String> producer = Judge.producer()) {
            for (int n = 0; n < 100; n++) producer.send(new ProducerRecord<>(topic, 0, null, "v" + n));
            producer.flush();
            String here = admin.describeReplicaLogDirs(List.of(replica)).all().get().get(replica).getCurrentReplicaLogDir();
            Set<String> directories = admin.describeLogDirs(List.of(1)).allDescriptions().get().get(1).keySet();
            String there = directories.stream().filter(path -> !path.equals(here)).findFirst().get();
            admin.alterReplicaLogDirs(Map.of(replica, there)).all().get();
            Judge.eventually("moved", () -> {
                producer.send(new ProducerRecord<>(topic, 0, null, "more")).get();
                DescribeReplicaLogDirsResult.ReplicaLogDirInfo now = admin.describeReplicaLogDirs(List.of(replica)).all().get().get(replica);
                return there.equals(now.getCurrentReplicaLogDir()) && now.getFutureReplicaLogDir() == null;
            });
            Judge.that(Judge.values(topic, 1, "read_committed").size() > 100, "all records are there");
            Judge.fails(LogDirNotFoundException.class, () -> admin.alterReplicaLogDirs(Map.of(replica, "/nowhere")).all().get());
            TopicPartitionReplica unknown = new TopicPartitionReplica("not-there", 0, 1);
            Judge.fails(UnknownTopicOrPartitionException.class, () -> admin.alterReplicaLogDirs(Map.of(unknown, there)).all().get());
        }
    }

    public static void unknownBrokerIsNotUnregistered() throws Exception {
        try (Admin admin = Judge.admin()) {
            Judge.fails(BrokerIdNotRegisteredException.class, () -> admin.unregisterBroker(77).all().get());
            Judge.fails(InvalidRequestException.class, () -> admin.unregisterBroker(1).all().get());
            Judge.same(1, admin.describeCluster().nodes().get().size());
        }
    }

    public static void openTransactionIsFoundAndAborted() throws Exception {
        String topic = Judge.topic(1), id = Judge.unique("tx");
        TopicPartition partition = new TopicPartition(topic, 0);
        try (Admin admin = Judge.admin(); KafkaProducer<String, String> producer = Judge.transactional(id)) {
            producer.initTransactions();
            producer.beginTransaction();
            Judge.send(producer, topic, 0, "hanging");
            ProducerState state = admin.describeProducers(List.of(partition)).all().get().get(partition).activeProducers().get(0);
            Judge.same(0, state.lastSequence());
            Judge.same(OptionalLong.of(0), state.currentTransactionStartOffset());
            TransactionDescription told = admin.describeTransactions(List.of(id)).all().get().get(id);
            Judge.same(TransactionState.ONGOING, told.state());
            Judge.same(Set.of(partition), told.topicPartitions());
            Judge.same(state.producerId(), told.producerId());
            Judge.that(told.transactionStartTimeMs().isPresent(), "the start is told");
            Judge.that(listed(admin, new ListTransactionsOptions().filterStates(List.of(TransactionState.ONGOING)), id), "listed by state");
            Judge.that(listed(admin, new ListTransactionsOptions().filterProducerIds(List.of(told.producerId())), id), "listed by producer id");
            Judge.that(!listed(admin, new ListTransactionsOptions().filterStates(List.of(TransactionState.EMPTY)), id), "not in this state");
            Judge.that(!listed(admin, new ListTransactionsOptions().filterOnDuration(600_000), id), "not for so long");
            admin.abortTransaction(new AbortTransactionSpec(partition, state.producerId(), (short) state.producerEpoch(),
                state.coordinatorEpoch().orElse(0))).all().get();
            Judge.same(OptionalLong.empty(), admin.describeProducers(List.of(partition)).all().get().get(partition)
                .activeProducers().get(0).currentTransactionStartOffset());
            Judge.same(List.of(), Judge.values(topic, 1, "read_committed"));
            Judge.same(2L, offset(admin, partition, OffsetSpec.latest()).offset());
            Judge.fails(TransactionalIdNotFoundException.class, () -> admin.describeTransactions(List.of("nobody")).all().get());
            Judge.fails(InvalidProducerEpochException.class, () -> admin.abortTransaction(new AbortTransactionSpec(
                partition, state.producerId(), (short) (state.producerEpoch() - 1), 0)).all().get());
        }
    }

    private static boolean listed(Admin admin, ListTransactionsOptions options, String id) throws Exception {
        return admin.listTransactions(options).all().get().stream().anyMatch(found -> found.transactionalId().equals(id));
    }

    public static void producersAreFenced() throws Exception {
        String topic = Judge.topic(1), id = Judge.unique("tx");
        try (Admin admin = Judge.admin(); KafkaProducer<String, String> producer = Judge.transactional(id)) {
            producer.initTransactions();
            producer.beginTransaction();
            Judge.send(producer, topic, 0, "fenced");
            FenceProducersResult fenced = admin.fenceProducers(List.of(id));
            fenced.all().get();
            Judge.that(fenced.producerId(id).get() >= 0 && fenced.epochId(id).get() > 0, "id and epoch are told");
            Judge.fails(ProducerFencedException.class, () -> { producer.commitTransaction(); return null; });
        }
        Judge.same(List.of(), Judge.values(topic, 1, "read_committed"));
    }

    public static void quorumAndFeaturesAreTold() throws Exception {
        try (Admin admin = Judge.admin()) {
            QuorumInfo quorum = admin.describeMetadataQuorum().quorumInfo().get();
            int node = admin.describeCluster().nodes().get().iterator().next().id();
            Judge.same(node, quorum.leaderId());
            Judge.same(1, quorum.voters().size());
            Judge.that(quorum.highWatermark() > 0 && quorum.voters().get(0).logEndOffset() >= quorum.highWatermark(), "" + quorum);
            Map<String, SupportedVersionRange> supported = admin.describeFeatures().featureMetadata().get().supportedFeatures();
            Judge.that(supported.keySet().containsAll(Set.of("metadata.version", "transaction.version", "group.version")), "" + supported);
            Judge.that(admin.listClientMetricsResources().all().get().isEmpty(), "no client metrics subscriptions");
        }
    }

    public static void offsetsOfManyGroupsAreListedAtOnce() throws Exception {
        String topic = Judge.topic(2);
        TopicPartition first = new TopicPartition(topic, 0), second = new TopicPartition(topic, 1);
        String one = Judge.unique("many"), two = Judge.unique("many");
        try (Admin admin = Judge.admin()) {
            admin.alterConsumerGroupOffsets(one, Map.of(first, new OffsetAndMetadata(1))).all().get();
            admin.alterConsumerGroupOffsets(two, Map.of(second, new OffsetAndMetadata(2))).all().get();
            ListConsumerGroupOffsetsSpec all = new ListConsumerGroupOffsetsSpec();
            Map<String, Map<TopicPartition, OffsetAndMetadata>> told = admin.listConsumerGroupOffsets(Map.of(one, all, two,
                new ListConsumerGroupOffsetsSpec().topicPartitions(List.of(first, second)))).all().get();
            Judge.same(Map.of(first, new OffsetAndMetadata(1)), told.get(one));
            Judge.same(new OffsetAndMetadata(2), told.get(two).get(second));
            Judge.same(null, told.get(two).get(first));
        }
    }

    public static void producerOfATransactionIsFencedByItsGroupGeneration() throws Exception {
        String topic = Judge.topic(1), group = Judge.unique("group");
        TopicPartition partition = new TopicPartition(topic, 0);
        try (KafkaProducer<String, String> producer = Judge.transactional(Judge.unique("tx"));
             KafkaConsumer<String, String> consumer = Judge.consumer("group.id", group)) {
            producer.initTransactions();
            consumer.subscribe(List.of(topic));
            Judge.eventually("assigned", () -> { consumer.poll(Duration.ofMillis(100)); return !consumer.assignment().isEmpty(); });
            ConsumerGroupMetadata now = consumer.groupMetadata();
            ConsumerGroupMetadata old = new ConsumerGroupMetadata(group, now.generationId() + 5, now.memberId(), Optional.empty());
            producer.beginTransaction();
            Judge.fails(CommitFailedException.class, () -> {
                producer.sendOffsetsToTransaction(Map.of(partition, new OffsetAndMetadata(3)), old);
                producer.commitTransaction();
                return null;
            });
            producer.abortTransaction();
            producer.beginTransaction();
            producer.sendOffsetsToTransaction(Map.of(partition, new OffsetAndMetadata(4)), now);
            producer.commitTransaction();
            Judge.same(4L, consumer.committed(Set.of(partition)).get(partition).offset());
        }
    }

    public static void onlyTheRecordsWithoutAKeyAreNamedAsInvalid() throws Exception {
        String topic = Judge.topic(1, Map.of("cleanup.policy", "compact"));
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<String, String> producer = Judge.producer("linger.ms", 5_000)) {
            for (String key : Arrays.asList("a", null, "b", null)) sent.add(producer.send(new ProducerRecord<>(topic, 0, key, "v")));
            producer.flush();
        }
        for (int at = 0; at < 4; at++) {
            Throwable failure = null;
            try {
                sent.get(at).get();
            } catch (ExecutionException problem) {
                failure = problem.getCause();
            }
            Judge.same(at % 2 == 1, failure instanceof InvalidRecordException);
            Judge.that(failure.getMessage().contains(at % 2 == 1 ? "key" : "part of a batch"), failure.getMessage());
        }
        Judge.same(0, Judge.values(topic, 1, "read_uncommitted").size());
    }
}
