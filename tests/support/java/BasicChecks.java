import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.header.internals.RecordHeader;

/** What every client since 2.8 can do: records, transactions, classic groups and the older half of the admin client. */
public final class BasicChecks {

    // ---- producing and consuming ----

    public static void recordsOfEveryCodecComeBackWhole() throws Exception {
        String topic = Judge.topic(1);
        List<String> expected = new ArrayList<>();
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            try (KafkaProducer<String, String> producer = Judge.producer("compression.type", codec, "linger.ms", 20)) {
                for (int n = 0; n < 200; n++) {
                    ProducerRecord<String, String> record =
                        new ProducerRecord<>(topic, 0, 1_700_000_000_000L + n, n % 3 == 0 ? null : "k" + n, codec + n);
                    record.headers().add("h", codec.getBytes(StandardCharsets.UTF_8)).add(new RecordHeader("nil", null));
                    producer.send(record);
                    expected.add(codec + n);
                }
            }
        }
        List<ConsumerRecord<String, String>> found = Judge.readAll(topic, 1, "read_uncommitted");
        for (int at = 0; at < found.size(); at++) {
            ConsumerRecord<String, String> record = found.get(at);
            int n = at % 200;
            Judge.same((long) at, record.offset());
            Judge.same(expected.get(at), record.value());
            Judge.same(n % 3 == 0 ? null : "k" + n, record.key());
            Judge.same(1_700_000_000_000L + n, record.timestamp());
            Judge.same(expected.get(at).substring(0, expected.get(at).length() - ("" + n).length()),
                Judge.text(record.headers().lastHeader("h").value()));
            Judge.same(null, record.headers().lastHeader("nil").value());
        }
        Judge.same(expected.size(), found.size());
    }

    public static void producerWithEveryAcksIsAnswered() throws Exception {
        String topic = Judge.topic(1);
        for (String acks : List.of("0", "1", "all")) {
            try (KafkaProducer<String, String> producer =
                     Judge.producer("acks", acks, "enable.idempotence", acks.equals("all"))) {
                RecordMetadata sent = producer.send(new ProducerRecord<>(topic, acks)).get(20, TimeUnit.SECONDS);
                Judge.same(!acks.equals("0"), sent.hasOffset());
            }
        }
        Judge.eventually("three records", () -> Judge.values(topic, 1, "read_committed").equals(List.of("0", "1", "all")));
    }

    public static void seekingAndOffsetsForTimesFindTheRecords() throws Exception {
        String topic = Judge.topic(2);
        TopicPartition first = new TopicPartition(topic, 0), empty = new TopicPartition(topic, 1);
        try (KafkaProducer<String, String> producer = Judge.producer();
             KafkaConsumer<String, String> consumer = Judge.consumer()) {
            for (int n = 0; n < 100; n++) producer.send(new ProducerRecord<>(topic, 0, 1_700_000_000_000L + n * 10, null, "" + n));
            producer.flush();
            Judge.same(Map.of(first, 0L, empty, 0L), consumer.beginningOffsets(List.of(first, empty)));
            Judge.same(Map.of(first, 100L, empty, 0L), consumer.endOffsets(List.of(first, empty)));
            Map<TopicPartition, OffsetAndTimestamp> found =
                consumer.offsetsForTimes(Map.of(first, 1_700_000_000_345L, empty, 1L));
            Judge.same(35L, found.get(first).offset());
            Judge.same(1_700_000_000_350L, found.get(first).timestamp());
            Judge.same(null, found.get(empty));
            Judge.same(null, consumer.offsetsForTimes(Map.of(first, 1_800_000_000_000L)).get(first));
            consumer.assign(List.of(first));
            consumer.seek(first, 57);
            ConsumerRecords<String, String> records = consumer.poll(Duration.ofSeconds(10));
            Judge.same("57", records.iterator().next().value());
            consumer.seek(first, 1_000_000);
            Judge.eventually("reset to the beginning", () -> {
                Iterator<ConsumerRecord<String, String>> all = consumer.poll(Duration.ofMillis(200)).iterator();
                return all.hasNext() && all.next().offset() == 0;
            });
        }
    }

    public static void fetchSessionOfManyPartitionsSeesEveryRecord() throws Exception {
        String topic = Judge.topic(60);
        Set<String> expected = new HashSet<>(), found = new HashSet<>();
        try (KafkaProducer<String, String> producer = Judge.producer();
             KafkaConsumer<String, String> consumer = Judge.consumer("fetch.max.wait.ms", 100)) {
            List<TopicPartition> partitions = Judge.partitions(topic, 60);
            consumer.assign(partitions);
            for (int round = 0; round < 20; round++) {
                int index = round * 7 % 60;
                if (round == 10) consumer.pause(partitions.subList(30, 60));
                if (round == 15) consumer.resume(partitions.subList(30, 60));
                Judge.send(producer, topic, index, "r" + round);
                expected.add("r" + round);
                consumer.poll(Duration.ofMillis(100)).forEach(record -> found.add(record.value()));
            }
            consumer.assign(partitions.subList(0, 59));
            consumer.assign(partitions);
            Judge.eventually("all records seen", () -> {
                consumer.poll(Duration.ofMillis(100)).forEach(record -> found.add(record.value()));
                return found.equals(expected);
            });
        }
    }

    public static void bigMessagesPassAndTooBigOnesAreRefused() throws Exception {
        String topic = Judge.topic(1, Map.of("max.message.bytes", "6000000"));
        String big = "x".repeat(5_000_000);
        try (KafkaProducer<String, String> producer =
                 Judge.producer("max.request.size", 10_000_000, "buffer.memory", 64_000_000)) {
            producer.send(new ProducerRecord<>(topic, big)).get();
            Judge.fails(RecordTooLargeException.class,
                () -> producer.send(new ProducerRecord<>(topic, "y".repeat(7_000_000))).get());
            producer.send(new ProducerRecord<>(topic, "after")).get();
        }
        Judge.that(Judge.values(topic, 1, "read_committed").equals(List.of(big, "after")), "both records come back");
    }

    // ---- transactions ----

    public static void onlyCommittedRecordsAreVisible() throws Exception {
        String topic = Judge.topic(3);
        Set<String> expected = new TreeSet<>();
        try (KafkaProducer<String, String> producer = Judge.transactional(Judge.unique("tx"))) {
            producer.initTransactions();
            for (int round = 0; round < 60; round++) {
                boolean commit = round % 3 != 1;
                producer.beginTransaction();
                for (int n = 0; n < 5; n++) {
                    String value = (commit ? "good" : "bad") + round + "-" + n;
                    producer.send(new ProducerRecord<>(topic, (round + n) % 3, null, value));
                    if (commit) expected.add(value);
                }
                if (round % 6 == 1) producer.flush();
                if (commit) producer.commitTransaction(); else producer.abortTransaction();
            }
        }
        List<String> committed = Judge.values(topic, 3, "read_committed");
        Judge.same(expected.size(), committed.size());
        Judge.same(expected, new TreeSet<>(committed));
        Judge.that(Judge.values(topic, 3, "read_uncommitted").stream().anyMatch(v -> v.startsWith("bad")), "aborted ones were written");
    }

    public static void openTransactionHoldsBackReadersOfCommittedRecords() throws Exception {
        String topic = Judge.topic(1);
        TopicPartition partition = new TopicPartition(topic, 0);
        try (KafkaProducer<String, String> plain = Judge.producer();
             KafkaProducer<String, String> producer = Judge.transactional(Judge.unique("tx"));
             KafkaConsumer<String, String> committed = Judge.consumer("isolation.level", "read_committed");
             KafkaConsumer<String, String> uncommitted = Judge.consumer()) {
            producer.initTransactions();
            Judge.send(plain, topic, 0, "before");
            producer.beginTransaction();
            Judge.send(producer, topic, 0, "inside");
            Judge.send(plain, topic, 0, "after");
            Judge.same(1L, committed.endOffsets(List.of(partition)).get(partition));
            Judge.same(3L, uncommitted.endOffsets(List.of(partition)).get(partition));
            Judge.same(List.of("before"), Judge.values(topic, 1, "read_committed"));
            producer.commitTransaction();
            Judge.eventually("the marker is written", () -> committed.endOffsets(List.of(partition)).get(partition) == 4L);
            Judge.same(List.of("before", "inside", "after"), Judge.values(topic, 1, "read_committed"));
        }
    }

    public static void offsetsSentToATransactionShareItsFate() throws Exception {
        String topic = Judge.topic(1), group = Judge.unique("group");
        TopicPartition partition = new TopicPartition(topic, 0);
        try (KafkaProducer<String, String> producer = Judge.transactional(Judge.unique("tx"));
             KafkaConsumer<String, String> consumer = Judge.consumer("group.id", group)) {
            producer.initTransactions();
            ConsumerGroupMetadata nobody = new ConsumerGroupMetadata(group);
            producer.beginTransaction();
            producer.sendOffsetsToTransaction(Map.of(partition, new OffsetAndMetadata(5, "five")), nobody);
            producer.abortTransaction();
            Judge.same(null, consumer.committed(Set.of(partition)).get(partition));
            producer.beginTransaction();
            Judge.send(producer, topic, 0, "a");
            producer.sendOffsetsToTransaction(Map.of(partition, new OffsetAndMetadata(7, "seven")), nobody);
            producer.commitTransaction();
            Judge.same(new OffsetAndMetadata(7, "seven"), consumer.committed(Set.of(partition)).get(partition));
        }
    }

    public static void exactlyOnceCopyMovesEveryRecordOnce() throws Exception {
        String input = Judge.topic(2), output = Judge.topic(2), group = Judge.unique("eos");
        try (KafkaProducer<String, String> plain = Judge.producer()) {
            for (int n = 0; n < 200; n++) plain.send(new ProducerRecord<>(input, n % 2, null, "" + n));
        }
        int copied = 0;
        String id = Judge.unique("tx");
        for (int life = 0; life < 2; life++) {
            try (KafkaProducer<String, String> producer = Judge.transactional(id);
                 KafkaConsumer<String, String> consumer =
                     Judge.consumer("group.id", group, "isolation.level", "read_committed", "max.poll.records", 25)) {
                producer.initTransactions();
                consumer.subscribe(List.of(input));
                for (int round = 0; copied < (life + 1) * 100; round++) {
                    ConsumerRecords<String, String> records = consumer.poll(Duration.ofSeconds(5));
                    if (records.isEmpty()) continue;
                    producer.beginTransaction();
                    Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
                    for (ConsumerRecord<String, String> record : records) {
                        producer.send(new ProducerRecord<>(output, record.partition(), null, record.value()));
                        next.put(new TopicPartition(input, record.partition()), new OffsetAndMetadata(record.offset() + 1));
                    }
                    producer.sendOffsetsToTransaction(next, consumer.groupMetadata());
                    if (round % 4 == 3) {
                        producer.abortTransaction();
                        for (TopicPartition partition : next.keySet()) {
                            OffsetAndMetadata committed = consumer.committed(Set.of(partition)).get(partition);
                            consumer.seek(partition, committed == null ? 0 : committed.offset());
                        }
                    } else {
                        producer.commitTransaction();
                        copied += records.count();
                    }
                }
            }
        }
        Set<String> found = new HashSet<>(Judge.values(output, 2, "read_committed"));
        Judge.same(200, found.size());
        Judge.same(200, Judge.values(output, 2, "read_committed").size());
    }

    public static void secondProducerFencesTheFirst() throws Exception {
        String topic = Judge.topic(1), id = Judge.unique("tx");
        try (KafkaProducer<String, String> first = Judge.transactional(id);
             KafkaProducer<String, String> second = Judge.transactional(id)) {
            first.initTransactions();
            first.beginTransaction();
            Judge.send(first, topic, 0, "zombie");
            second.initTransactions();
            second.beginTransaction();
            Judge.send(second, topic, 0, "alive");
            Judge.fails(ProducerFencedException.class, () -> { first.commitTransaction(); return null; });
            second.commitTransaction();
        }
        Judge.same(List.of("alive"), Judge.values(topic, 1, "read_committed"));
    }

    public static void transactionThatTakesTooLongIsAborted() throws Exception {
        String topic = Judge.topic(1);
        TopicPartition partition = new TopicPartition(topic, 0);
        try (KafkaProducer<String, String> producer =
                 Judge.transactional(Judge.unique("tx"), "transaction.timeout.ms", 1_000);
             KafkaConsumer<String, String> committed = Judge.consumer("isolation.level", "read_committed")) {
            producer.initTransactions();
            producer.beginTransaction();
            Judge.send(producer, topic, 0, "late");
            Judge.eventually("aborted by the broker", () -> committed.endOffsets(List.of(partition)).get(partition) == 2L);
            Judge.fails(KafkaException.class, () -> { producer.commitTransaction(); return null; });
        }
        Judge.same(List.of(), Judge.values(topic, 1, "read_committed"));
    }

    public static void transactionTimeoutAboveTheMaximumIsRefused() {
        try (KafkaProducer<String, String> producer =
                 Judge.transactional(Judge.unique("tx"), "transaction.timeout.ms", 2_000_000_000)) {
            Judge.fails(KafkaException.class, () -> { producer.initTransactions(); return null; });
        }
    }

    // ---- classic groups ----

    public static void rangeGroupSharesItsPartitions() throws Exception {
        Groups.shares("partition.assignment.strategy", "org.apache.kafka.clients.consumer.RangeAssignor");
    }

    public static void cooperativeGroupSharesItsPartitions() throws Exception {
        Groups.shares("partition.assignment.strategy", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");
    }

    public static void staticMemberKeepsItsPartitionsOverARestart() throws Exception {
        String topic = Judge.topic(4), group = Judge.unique("static");
        try (Groups.Member steady = new Groups.Member(topic, group, "group.instance.id", "a")) {
            Groups.Member restarted = new Groups.Member(topic, group, "group.instance.id", "b");
            Judge.eventually("two each", () -> steady.owned.size() == 2 && restarted.owned.size() == 2);
            Set<TopicPartition> before = restarted.owned;
            int rebalances = steady.rebalances;
            restarted.close();
            try (Groups.Member again = new Groups.Member(topic, group, "group.instance.id", "b")) {
                Judge.eventually("the same two", () -> again.owned.equals(before));
                Judge.same(rebalances, steady.rebalances);
                try (Groups.Member thief = new Groups.Member(topic, group, "group.instance.id", "b")) {
                    Judge.eventually("the older one is fenced", () -> again.failure instanceof FencedInstanceIdException);
                }
            }
        }
    }

    public static void committedOffsetsAreFoundAgain() throws Exception {
        Groups.commits();
    }

    // ---- administration ----

    public static void clusterIsDescribed() throws Exception {
        try (Admin admin = Judge.admin()) {
            DescribeClusterResult cluster = admin.describeCluster(new DescribeClusterOptions().includeAuthorizedOperations(true));
            Judge.same(1, cluster.nodes().get().size());
            Judge.same(22, cluster.clusterId().get().length());
            Judge.that(cluster.controller().get().id() >= 0, "there is a controller");
            Judge.that(admin.metrics().size() > 0, "metrics");
        }
    }

    public static void topicsAreCreatedGrownAndDeleted() throws Exception {
        String name = Judge.unique("admin");
        try (Admin admin = Judge.admin()) {
            CreateTopicsResult created = admin.createTopics(
                List.of(new NewTopic(name, Optional.of(2), Optional.empty()).configs(Map.of("retention.ms", "1234567"))));
            Judge.same(2, created.numPartitions(name).get());
            Judge.same(1, created.replicationFactor(name).get());
            Judge.same("1234567", created.config(name).get().get("retention.ms").value());
            Judge.that(!created.topicId(name).get().equals(Uuid.ZERO_UUID), "the topic has an id");
            Judge.that(admin.listTopics().names().get().contains(name), "listed");
            Judge.fails(TopicExistsException.class,
                () -> admin.createTopics(List.of(new NewTopic(name, 1, (short) 1))).all().get());
            Judge.fails(InvalidReplicationFactorException.class,
                () -> admin.createTopics(List.of(new NewTopic(name + "x", 1, (short) 3))).all().get());
            Judge.fails(InvalidTopicException.class,
                () -> admin.createTopics(List.of(new NewTopic("no good", 1, (short) 1))).all().get());
            Judge.fails(InvalidPartitionsException.class,
                () -> admin.createTopics(List.of(new NewTopic(name + "x", 0, (short) 1))).all().get());
            Judge.fails(InvalidConfigurationException.class, () -> admin.createTopics(
                List.of(new NewTopic(name + "x", 1, (short) 1).configs(Map.of("retention.ms", "soon")))).all().get());
            admin.createTopics(List.of(new NewTopic(name + "dry", 1, (short) 1)), new CreateTopicsOptions().validateOnly(true)).all().get();
            Judge.that(!admin.listTopics().names().get().contains(name + "dry"), "only validated");
            admin.createPartitions(Map.of(name, NewPartitions.increaseTo(5))).all().get();
            Judge.fails(InvalidPartitionsException.class,
                () -> admin.createPartitions(Map.of(name, NewPartitions.increaseTo(3))).all().get());
            try (KafkaConsumer<String, String> consumer = Judge.consumer()) {
                Judge.same(5, consumer.partitionsFor(name).size());
            }
            admin.deleteTopics(List.of(name)).all().get();
            Judge.eventually("gone", () -> !admin.listTopics().names().get().contains(name));
            Judge.fails(UnknownTopicOrPartitionException.class, () -> admin.deleteTopics(List.of(name)).all().get());
        }
    }

    public static void configsOfTopicsAndBrokersAreChanged() throws Exception {
        String name = Judge.topic(1);
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, name);
        try (Admin admin = Judge.admin()) {
            String node = admin.describeCluster().nodes().get().iterator().next().idString();
            ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, node);
            ConfigResource brokers = new ConfigResource(ConfigResource.Type.BROKER, "");
            alter(admin, topic, "retention.ms", "86400000", AlterConfigOp.OpType.SET);
            alter(admin, topic, "cleanup.policy", "compact", AlterConfigOp.OpType.APPEND);
            ConfigEntry retention = entry(admin, topic, "retention.ms");
            Judge.same("86400000", retention.value());
            Judge.same(ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG, retention.source());
            Judge.same(ConfigEntry.ConfigType.LONG, retention.type());
            Judge.same("delete,compact", entry(admin, topic, "cleanup.policy").value());
            alter(admin, topic, "cleanup.policy", "compact", AlterConfigOp.OpType.SUBTRACT);
            alter(admin, topic, "retention.ms", "", AlterConfigOp.OpType.DELETE);
            Judge.same(ConfigEntry.ConfigSource.DEFAULT_CONFIG, entry(admin, topic, "retention.ms").source());
            Judge.same("delete", entry(admin, topic, "cleanup.policy").value());
            Judge.fails(InvalidConfigurationException.class,
                () -> { alter(admin, topic, "retention.ms", "soon", AlterConfigOp.OpType.SET); return null; });
            Judge.fails(InvalidConfigurationException.class,
                () -> { alter(admin, topic, "no.such.key", "1", AlterConfigOp.OpType.SET); return null; });
            alter(admin, broker, "log.cleaner.threads", "2", AlterConfigOp.OpType.SET);
            Judge.same("2", entry(admin, broker, "log.cleaner.threads").value());
            alter(admin, broker, "log.cleaner.threads", "", AlterConfigOp.OpType.DELETE);
            alter(admin, brokers, "log.retention.ms", "777777777", AlterConfigOp.OpType.SET);
            Judge.eventually("the default reaches the topic", () -> {
                ConfigEntry inherited = entry(admin, topic, "retention.ms");
                return inherited.value().equals("777777777")
                    && inherited.source() == ConfigEntry.ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG;
            });
            alter(admin, brokers, "log.retention.ms", "", AlterConfigOp.OpType.DELETE);
            Judge.fails(InvalidRequestException.class,
                () -> { alter(admin, broker, "node.id", "9", AlterConfigOp.OpType.SET); return null; });
            Config all = admin.describeConfigs(List.of(broker),
                new DescribeConfigsOptions().includeDocumentation(true).includeSynonyms(true)).all().get().get(broker);
            Judge.that(all.entries().size() > 100, "all broker configs are told: " + all.entries().size());
            Judge.that(all.get("num.partitions").documentation() != null, "with their documentation");
            Judge.that(!all.get("num.partitions").synonyms().isEmpty(), "with their synonyms");
            ConfigResource unknown = new ConfigResource(ConfigResource.Type.TOPIC, "not-there");
            Judge.fails(UnknownTopicOrPartitionException.class, () -> admin.describeConfigs(List.of(unknown)).all().get());
        }
    }

    static void alter(Admin admin, ConfigResource resource, String key, String value, AlterConfigOp.OpType type)
            throws Exception {
        AlterConfigOp change = new AlterConfigOp(new ConfigEntry(key, value), type);
        admin.incrementalAlterConfigs(Map.of(resource, List.of(change))).all().get();
    }

    static ConfigEntry entry(Admin admin, ConfigResource resource, String key) throws Exception {
        return admin.describeConfigs(List.of(resource)).all().get().get(resource).get(key);
    }

    public static void deletedRecordsAreGone() throws Exception {
        String topic = Judge.topic(1);
        TopicPartition partition = new TopicPartition(topic, 0);
        try (Admin admin = Judge.admin(); KafkaProducer<String, String> producer = Judge.producer()) {
            Judge.send(producer, topic, 0, "a", "b", "c", "d");
            Judge.same(3L, admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(3))).lowWatermarks().get(partition).get().lowWatermark());
            Judge.same(List.of("d"), Judge.values(topic, 1, "read_committed"));
            Judge.fails(org.apache.kafka.common.errors.OffsetOutOfRangeException.class,
                () -> admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(9))).all().get());
            admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(-1))).all().get();
            Judge.same(List.of(), Judge.values(topic, 1, "read_committed"));
            Judge.same(4L, admin.listOffsets(Map.of(partition, OffsetSpec.earliest())).all().get().get(partition).offset());
            Judge.same(4L, admin.listOffsets(Map.of(partition, OffsetSpec.latest())).all().get().get(partition).offset());
        }
    }

    public static void groupsAreListedDescribedChangedAndDeleted() throws Exception {
        String topic = Judge.topic(2), group = Judge.unique("admin");
        TopicPartition first = new TopicPartition(topic, 0), second = new TopicPartition(topic, 1);
        try (Admin admin = Judge.admin()) {
            try (Groups.Member member = new Groups.Member(topic, group, "client.id", "probe")) {
                Judge.eventually("assigned", () -> member.owned.size() == 2);
                Judge.eventually("stable", () -> admin.describeConsumerGroups(List.of(group)).all().get().get(group).members().size() == 1);
                ConsumerGroupDescription told = admin.describeConsumerGroups(List.of(group),
                    new DescribeConsumerGroupsOptions().includeAuthorizedOperations(true)).all().get().get(group);
                Judge.same("range", told.partitionAssignor());
                MemberDescription only = told.members().iterator().next();
                Judge.same("probe", only.clientId());
                Judge.same(Set.of(first, second), only.assignment().topicPartitions());
                Judge.that(admin.listConsumerGroups().all().get().stream().anyMatch(g -> g.groupId().equals(group)), "listed");
                Judge.fails(GroupNotEmptyException.class, () -> admin.deleteConsumerGroups(List.of(group)).all().get());
                Judge.fails(UnknownMemberIdException.class, () -> admin.alterConsumerGroupOffsets(group, Map.of(first, new OffsetAndMetadata(1))).all().get());
                Judge.fails(GroupSubscribedToTopicException.class, () -> admin.deleteConsumerGroupOffsets(group, Set.of(first)).all().get());
                admin.removeMembersFromConsumerGroup(group, new RemoveMembersFromConsumerGroupOptions()).all().get();
            }
            Judge.eventually("empty", () -> admin.describeConsumerGroups(List.of(group)).all().get().get(group).members().isEmpty());
            admin.alterConsumerGroupOffsets(group, Map.of(first, new OffsetAndMetadata(11, "m"), second, new OffsetAndMetadata(12))).all().get();
            Map<TopicPartition, OffsetAndMetadata> offsets = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
            Judge.same(new OffsetAndMetadata(11, "m"), offsets.get(first));
            admin.deleteConsumerGroupOffsets(group, Set.of(first)).all().get();
            Judge.same(Set.of(second), admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().keySet());
            admin.deleteConsumerGroups(List.of(group)).all().get();
            Judge.fails(GroupIdNotFoundException.class, () -> admin.deleteConsumerGroups(List.of(group)).all().get());
            Judge.that(admin.listConsumerGroups().all().get().stream().noneMatch(g -> g.groupId().equals(group)), "gone");
        }
    }

    public static void logDirectoriesAndReplicasAreTold() throws Exception {
        String topic = Judge.topic(2);
        try (Admin admin = Judge.admin(); KafkaProducer<String, String> producer = Judge.producer()) {
            Judge.send(producer, topic, 0, "a");
            int node = admin.describeCluster().nodes().get().iterator().next().id();
            TopicPartition partition = new TopicPartition(topic, 0);
            LogDirDescription directory = admin.describeLogDirs(List.of(node)).allDescriptions().get().get(node).values().stream()
                .filter(found -> found.replicaInfos().containsKey(partition)).findFirst().get();
            Judge.same(null, directory.error());
            Judge.that(directory.replicaInfos().get(partition).size() > 60, "the size is told");
            TopicPartitionReplica replica = new TopicPartitionReplica(topic, 0, node);
            Judge.that(admin.describeReplicaLogDirs(List.of(replica)).all().get().get(replica).getCurrentReplicaLogDir() != null, "the directory is told");
            Judge.same(Map.of(), admin.listPartitionReassignments().reassignments().get());
            Map<TopicPartition, Optional<Throwable>> elected =
                admin.electLeaders(ElectionType.PREFERRED, Set.of(partition)).partitions().get();
            Judge.that(elected.get(partition).get() instanceof ElectionNotNeededException, "the preferred leader leads: " + elected);
            Judge.fails(SecurityDisabledException.class, () -> admin.describeAcls(AclBindingFilter.ANY).values().get());
        }
    }

    public static void featuresAreTold() throws Exception {
        try (Admin admin = Judge.admin()) {
            FeatureMetadata features = admin.describeFeatures().featureMetadata().get();
            Judge.that(features.finalizedFeatures().containsKey("metadata.version"), "" + features);
            Judge.same((short) 2, features.finalizedFeatures().get("transaction.version").maxVersionLevel());
        }
    }
}
