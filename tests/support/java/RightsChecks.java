import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.quota.*;
import org.apache.kafka.common.resource.*;

/** What users may do: rules that are missing, given and taken away while clients are connected; and quotas. */
public final class RightsChecks {
    private static Object[] login(String user) {
        return Secured.scram("LOGIN", "SCRAM-SHA-512", user, "right");
    }

    private static String user() throws Exception {
        return Secured.scramUser("right", ScramMechanism.SCRAM_SHA_512);
    }

    private static void refusesToSend(KafkaProducer<String, String> producer, String topic, Class<? extends Throwable> kind) {
        Judge.fails(kind, () -> producer.send(new ProducerRecord<>(topic, "value")).get());
    }

    public static void rightThatIsTakenAwayEndsProducing() throws Exception {
        String user = user();
        String[] topic = new String[1];
        // Of a topic that may not even be described, a client learns nothing: the exception is the same.
        AclBinding[] rule = new AclBinding[1];
        topic[0] = Judge.topic(1);
        rule[0] = Secured.allow(user, ResourceType.TOPIC, topic[0], AclOperation.WRITE);
        try (KafkaProducer<String, String> producer = Judge.producer(login(user))) {
            Judge.send(producer, topic[0], 0, "before");
            Secured.disallow(rule[0]);
            Judge.eventually("it is refused", () -> {
                try {
                    producer.send(new ProducerRecord<>(topic[0], "after")).get();
                    return false;
                } catch (Exception problem) {
                    Judge.fails(TopicAuthorizationException.class, () -> {
                        throw problem;
                    });
                    return true;
                }
            });
            refusesToSend(producer, topic[0], TopicAuthorizationException.class);
        }
    }

    public static void rightThatIsTakenAwayEndsConsuming() throws Exception {
        String user = user(), topic = Judge.topic(1), group = Judge.unique("group");
        AclBinding read = Secured.allow(user, ResourceType.TOPIC, topic, AclOperation.READ);
        AclBinding join = Secured.allow(user, ResourceType.GROUP, group, AclOperation.READ);
        try (KafkaProducer<String, String> producer = Judge.producer()) {
            Judge.send(producer, topic, 0, "a");
        }
        try (KafkaConsumer<String, String> consumer = Judge.consumer(Secured.with(login(user), "group.id", group, "metadata.max.age.ms", 500))) {
            consumer.subscribe(List.of(topic));
            Judge.eventually("records come", () -> !consumer.poll(Duration.ofMillis(200)).isEmpty());
            Secured.disallow(join);
            Judge.eventually("the group is closed", () -> isThrown(GroupAuthorizationException.class, consumer::commitSync));
            Secured.disallow(read);
            Judge.eventually("the topic is closed",
                () -> isThrown(TopicAuthorizationException.class, () -> consumer.partitionsFor(topic, Duration.ofSeconds(10))));
        }
        try (KafkaConsumer<String, String> consumer = Judge.consumer(login(user))) {
            consumer.assign(Judge.partitions(topic, 1));
            Judge.fails(TopicAuthorizationException.class, () -> consumer.poll(Duration.ofSeconds(10)));
        }
    }

    private static boolean isThrown(Class<? extends RuntimeException> kind, Runnable action) {
        try {
            action.run();
            return false;
        } catch (RuntimeException problem) {
            return kind.isInstance(problem);
        }
    }

    public static void everyKindOfResourceIsClosedWithoutARule() throws Exception {
        String user = user(), topic = Judge.topic(1);
        try (KafkaProducer<String, String> producer = Judge.producer(Secured.with(login(user), "enable.idempotence", false))) {
            refusesToSend(producer, topic, TopicAuthorizationException.class);
            refusesToSend(producer, "not-there", TopicAuthorizationException.class);
        }
        try (KafkaProducer<String, String> producer = Judge.transactional(Judge.unique("tx"), login(user))) {
            Judge.fails(TransactionalIdAuthorizationException.class, () -> {
                producer.initTransactions();
                return null;
            });
        }
        try (KafkaConsumer<String, String> consumer = Judge.consumer(Secured.with(login(user), "group.id", Judge.unique("group")))) {
            consumer.subscribe(List.of(topic));
            Judge.fails(AuthorizationException.class, () -> {
                for (int n = 0; n < 50; n++) consumer.poll(Duration.ofMillis(200));
                return null;
            });
        }
        try (Admin admin = Judge.admin(login(user))) {
            Judge.same(Set.of(), admin.listTopics().names().get());
            Judge.same(List.of(), new ArrayList<>(admin.listConsumerGroups().all().get()));
            Judge.fails(TopicAuthorizationException.class, () -> Secured.describe(admin, new DescribeTopicsOptions(), "not-there"));
            Judge.fails(TopicAuthorizationException.class, () -> admin.createTopics(List.of(new NewTopic("mine", 1, (short) 1))).all().get());
            Judge.fails(TopicAuthorizationException.class, () -> admin.deleteTopics(List.of(topic)).all().get());
            Judge.fails(ClusterAuthorizationException.class, () -> admin.describeAcls(AclBindingFilter.ANY).values().get());
            Judge.fails(ClusterAuthorizationException.class, () -> admin.describeUserScramCredentials().all().get());
            Judge.fails(ClusterAuthorizationException.class, () -> admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get());
            Judge.fails(ClusterAuthorizationException.class, () -> admin.listPartitionReassignments().reassignments().get());
            Judge.fails(ClusterAuthorizationException.class,
                () -> admin.describeConfigs(List.of(new ConfigResource(ConfigResource.Type.BROKER, "1"))).all().get());
            Judge.fails(TopicAuthorizationException.class,
                () -> admin.describeConfigs(List.of(new ConfigResource(ConfigResource.Type.TOPIC, topic))).all().get());
            Judge.fails(GroupAuthorizationException.class, () -> admin.describeConsumerGroups(List.of("theirs")).all().get());
            Judge.fails(GroupAuthorizationException.class, () -> admin.deleteConsumerGroups(List.of("theirs")).all().get());
        }
    }

    public static void idempotentProducerNeedsTheRightToWriteAnyTopic() throws Exception {
        String user = user(), topic = Judge.topic(1);
        Object[] login = Secured.with(login(user), "enable.idempotence", true, "acks", "all");
        try (KafkaProducer<String, String> producer = Judge.producer(login)) {
            Judge.fails(AuthorizationException.class, () -> producer.send(new ProducerRecord<>(topic, "value")).get());
        }
        Secured.allow(user, ResourceType.TOPIC, topic, AclOperation.WRITE);
        try (KafkaProducer<String, String> producer = Judge.producer(login)) {
            Judge.send(producer, topic, 0, "value");
        }
    }

    public static void denialsAndPrefixesDecideAsDocumented() throws Exception {
        String user = user(), prefix = Judge.unique("shared");
        Object[] login = Secured.with(login(user), "enable.idempotence", false);
        AclBinding allow = new AclBinding(new ResourcePattern(ResourceType.TOPIC, prefix, PatternType.PREFIXED),
            new AccessControlEntry("User:" + user, "*", AclOperation.ALL, AclPermissionType.ALLOW));
        AclBinding deny = new AclBinding(new ResourcePattern(ResourceType.TOPIC, prefix + "-closed", PatternType.LITERAL),
            new AccessControlEntry("User:*", "127.0.0.1", AclOperation.WRITE, AclPermissionType.DENY));
        try (Admin all = Judge.admin(); Admin admin = Judge.admin(login)) {
            all.createAcls(List.of(allow, deny)).all().get();
            Judge.eventually("the rules are known", () -> all.describeAcls(deny.toFilter()).values().get().size() == 1);
            admin.createTopics(List.of(new NewTopic(prefix + "-open", 1, (short) 1), new NewTopic(prefix + "-closed", 1, (short) 1))).all().get();
            Judge.same(Set.of(prefix + "-open", prefix + "-closed"), admin.listTopics().names().get());
            DescribeTopicsOptions options = new DescribeTopicsOptions().includeAuthorizedOperations(true);
            Map<String, TopicDescription> found = Secured.describe(admin, options, prefix + "-open", prefix + "-closed");
            Judge.that(found.get(prefix + "-open").authorizedOperations().contains(AclOperation.WRITE), "may write");
            Judge.that(!found.get(prefix + "-closed").authorizedOperations().contains(AclOperation.WRITE), "may not write");
        }
        try (KafkaProducer<String, String> producer = Judge.producer(login)) {
            Judge.send(producer, prefix + "-open", 0, "value");
            refusesToSend(producer, prefix + "-closed", TopicAuthorizationException.class);
        }
    }

    public static void producerAboveItsQuotaIsThrottled() throws Exception {
        String user = user(), topic = Judge.topic(1);
        Secured.allow(user, ResourceType.TOPIC, topic, AclOperation.WRITE);
        ClientQuotaEntity entity = new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, user));
        try (Admin admin = Judge.admin()) {
            admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity, List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 10_000.0))))).all().get();
            Judge.eventually("the quota is known", () -> admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get().containsKey(entity));
        }
        try (KafkaProducer<String, String> producer = Judge.producer(login(user))) {
            Judge.send(producer, topic, 0, "x".repeat(120_000));
            Judge.eventually("throttled", () -> producer.metrics().values().stream().anyMatch(
                metric -> metric.metricName().name().equals("produce-throttle-time-max") && (Double) metric.metricValue() > 0));
        }
    }
}
