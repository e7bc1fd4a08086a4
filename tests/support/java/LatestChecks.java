import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.serialization.StringDeserializer;

/** What only the clients of 4.x know: the consumer protocol (KIP-848) and the newest admin calls. */
public final class LatestChecks {
    private static final Object[] NEW = {"group.protocol", "consumer"};

    public static void consumerGroupSharesItsPartitions() throws Exception {
        Groups.shares(NEW);
    }

    public static void consumerGroupUsesTheRangeAssignor() throws Exception {
        Groups.shares("group.protocol", "consumer", "group.remote.assignor", "range");
    }

    public static void consumerGroupFindsItsCommittedOffsetsAgain() throws Exception {
        Groups.commits(NEW);
    }

    public static void unknownRemoteAssignorIsRefused() throws Exception {
        String topic = Judge.topic(1);
        try (Groups.Member member = new Groups.Member(topic, Judge.unique("g"), "group.protocol", "consumer", "group.remote.assignor", "nobody")) {
            Judge.eventually("refused", () -> member.failure instanceof UnsupportedAssignorException);
        }
    }

    public static void patternIsResolvedByTheBroker() throws Exception {
        String prefix = Judge.unique("re"), group = Judge.unique("group");
        try (Admin admin = Judge.admin(); Groups.Member member = new Groups.Member(group, NEW)) {
            admin.createTopics(List.of(new NewTopic(prefix + "-a", 2, (short) 1), new NewTopic("no" + prefix, 2, (short) 1))).all().get();
            member.consumer.subscribe(new SubscriptionPattern(prefix + "-[a-c]"), member);
            member.start();
            Judge.eventually("the topic that is there", () -> member.owned.equals(Set.copyOf(Judge.partitions(prefix + "-a", 2))));
            admin.createTopics(List.of(new NewTopic(prefix + "-c", 1, (short) 1), new NewTopic(prefix + "-d", 1, (short) 1))).all().get();
            Judge.eventually("the topic that came later", () -> member.owned.size() == 3);
            admin.deleteTopics(List.of(prefix + "-a")).all().get();
            Judge.eventually("the topic that went", () -> member.owned.equals(Set.of(new TopicPartition(prefix + "-c", 0))));
            Judge.same(null, member.failure);
        }
        try (Groups.Member member = new Groups.Member(group, NEW)) {
            member.consumer.subscribe(new SubscriptionPattern("(unclosed"));
            member.start();
            Judge.eventually("refused", () -> member.failure instanceof InvalidRegularExpression);
        }
    }

    public static void staticMemberOfAConsumerGroupComesBack() throws Exception {
        String topic = Judge.topic(4), group = Judge.unique("static");
        Object[] a = {"group.protocol", "consumer", "group.instance.id", "a"}, b = {"group.protocol", "consumer", "group.instance.id", "b"};
        try (Groups.Member steady = new Groups.Member(topic, group, a)) {
            Groups.Member restarted = new Groups.Member(topic, group, b);
            Judge.eventually("two each", () -> steady.owned.size() == 2 && restarted.owned.size() == 2);
            Set<TopicPartition> before = restarted.owned;
            restarted.close();
            try (Groups.Member again = new Groups.Member(topic, group, b);
                 Groups.Member thief = new Groups.Member(group, b)) {
                Judge.eventually("the same two", () -> again.owned.equals(before));
                thief.consumer.subscribe(List.of(topic));
                thief.start();
                Judge.eventually("the id is in use", () -> thief.failure instanceof UnreleasedInstanceIdException);
                Judge.same(null, again.failure);
            }
        }
    }

    public static void consumerGroupIsDescribed() throws Exception {
        String topic = Judge.topic(2), group = Judge.unique("group");
        try (Admin admin = Judge.admin(); Groups.Member member = new Groups.Member(topic, group, NEW)) {
            Judge.eventually("assigned", () -> member.owned.size() == 2);
            Judge.eventually("stable", () -> admin.describeConsumerGroups(List.of(group)).all().get().get(group).groupState() == GroupState.STABLE);
            ConsumerGroupDescription told = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
            Judge.same(GroupType.CONSUMER, told.type());
            Judge.same("uniform", told.partitionAssignor());
            MemberDescription only = told.members().iterator().next();
            Judge.same(Set.copyOf(Judge.partitions(topic, 2)), only.assignment().topicPartitions());
            Judge.same(only.assignment().topicPartitions(), only.targetAssignment().get().topicPartitions());
            Judge.same(Optional.of(true), only.upgraded());
            Judge.same(told.groupEpoch(), told.targetAssignmentEpoch());
            Collection<GroupListing> listed = admin.listGroups(new ListGroupsOptions().withTypes(Set.of(GroupType.CONSUMER))
                .inGroupStates(Set.of(GroupState.STABLE))).all().get();
            Judge.that(listed.stream().anyMatch(found -> found.groupId().equals(group)), "" + listed);
            Judge.fails(GroupNotEmptyException.class, () -> admin.deleteConsumerGroups(List.of(group)).all().get());
            Judge.fails(GroupIdNotFoundException.class, () -> admin.describeConsumerGroups(List.of("nobody")).all().get());
            Judge.fails(GroupIdNotFoundException.class, () -> admin.describeClassicGroups(List.of("nobody")).all().get());
        }
    }

    public static void classicMemberStaysInAGroupThatMovedToTheConsumerProtocol() throws Exception {
        String topic = Judge.topic(4), group = Judge.unique("group");
        try (Admin admin = Judge.admin(); Groups.Member old = new Groups.Member(topic, group, "client.id", "old")) {
            Judge.eventually("the classic one has all", () -> old.owned.size() == 4);
            Groups.Member young = new Groups.Member(topic, group, NEW);
            Judge.eventually("two each", () -> old.owned.size() == 2 && young.owned.size() == 2);
            Judge.same(GroupType.CONSUMER, admin.describeConsumerGroups(List.of(group)).all().get().get(group).type());
            young.close();
            Judge.eventually("the classic one has all again", () -> old.owned.size() == 4);
            Judge.same(null, old.failure);
            Judge.same(null, young.failure);
        }
    }

    public static void transactionOfAConsumerGroupMemberCommitsItsOffsets() throws Exception {
        String topic = Judge.topic(1), group = Judge.unique("group");
        TopicPartition partition = new TopicPartition(topic, 0);
        try (KafkaProducer<String, String> producer = Judge.transactional(Judge.unique("tx"));
             KafkaConsumer<String, String> consumer = Judge.consumer("group.id", group, "group.protocol", "consumer")) {
            producer.initTransactions();
            consumer.subscribe(List.of(topic));
            Judge.eventually("assigned", () -> { consumer.poll(Duration.ofMillis(100)); return !consumer.assignment().isEmpty(); });
            for (int round = 1; round < 30; round++) {
                producer.beginTransaction();
                Judge.send(producer, topic, 0, "r" + round);
                producer.sendOffsetsToTransaction(Map.of(partition, new OffsetAndMetadata(round)), consumer.groupMetadata());
                if (round % 2 == 0) producer.abortTransaction(); else producer.commitTransaction();
                Judge.same((long) (round - 1 + round % 2), consumer.committed(Set.of(partition)).get(partition).offset());
            }
        }
        Judge.same(15, Judge.values(topic, 1, "read_committed").size());
    }

    public static void batchAboveTheTopicsMaximumIsSplit() throws Exception {
        String small = Judge.topic(1, Map.of("max.message.bytes", "2000"));
        try (KafkaProducer<String, String> producer = Judge.producer("batch.size", 16_000, "linger.ms", 200)) {
            for (int n = 0; n < 30; n++) producer.send(new ProducerRecord<>(small, 0, null, "z".repeat(300)));
        }
        Judge.same(30, Judge.values(small, 1, "read_committed").size());
    }

    public static void groupConfigsAreChanged() throws Exception {
        ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, Judge.unique("group"));
        try (Admin admin = Judge.admin()) {
            BasicChecks.alter(admin, group, "consumer.session.timeout.ms", "50000", AlterConfigOp.OpType.SET);
            Judge.same("50000", BasicChecks.entry(admin, group, "consumer.session.timeout.ms").value());
            Judge.same(ConfigEntry.ConfigSource.DYNAMIC_GROUP_CONFIG, BasicChecks.entry(admin, group, "consumer.session.timeout.ms").source());
            Judge.that(admin.listConfigResources(Set.of(ConfigResource.Type.GROUP), new ListConfigResourcesOptions()).all().get().contains(group), "listed");
            BasicChecks.alter(admin, group, "consumer.session.timeout.ms", "", AlterConfigOp.OpType.DELETE);
            Judge.that(!admin.listConfigResources().all().get().isEmpty(), "brokers and topics are listed");
        }
    }

    public static void newestOffsetSpecIsAnswered() throws Exception {
        String topic = Judge.topic(1);
        try (Admin admin = Judge.admin()) {
            Judge.same(-1L, AdminChecks.offset(admin, new TopicPartition(topic, 0), OffsetSpec.earliestPendingUpload()).offset());
        }
    }

    public static void transactionsAreListedByPattern() throws Exception {
        String topic = Judge.topic(1), id = Judge.unique("tx");
        try (Admin admin = Judge.admin(); KafkaProducer<String, String> producer = Judge.transactional(id)) {
            producer.initTransactions();
            producer.beginTransaction();
            Judge.send(producer, topic, 0, "x");
            ListTransactionsOptions options = new ListTransactionsOptions().filterOnTransactionalIdPattern("tx-.*" + id.substring(4));
            Judge.same(1, admin.listTransactions(options).all().get().size());
            Judge.fails(InvalidRegularExpression.class, () -> admin.listTransactions(new ListTransactionsOptions().filterOnTransactionalIdPattern("(")).all().get());
            admin.forceTerminateTransaction(id).result().get();
            Judge.fails(ProducerFencedException.class, () -> { producer.commitTransaction(); return null; });
        }
    }

    public static void shareConsumerIsToldThatThereAreNoShareGroups() throws Exception {
        String topic = Judge.topic(1);
        Map<String, Object> config = Judge.config("group.id", Judge.unique("share"));
        try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            Judge.fails(UnsupportedVersionException.class, () -> {
                Judge.eventually("refused", () -> { consumer.poll(Duration.ofMillis(100)); return false; });
                return null;
            });
        }
    }
}
