import java.util.*;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.resource.ResourceType;

/** Logging in by SASL: right, wrong, again before a session ends, and revoked while connected. */
public final class LoginChecks {
    private static final String SHA_256 = "SCRAM-SHA-256", SHA_512 = "SCRAM-SHA-512";

    // ---- right and wrong ----

    public static void plainPasswordLetsIn() throws Exception {
        Secured.letsIn("alice", Secured.plain("LOGIN", "alice", "alice-secret"));
    }

    public static void wrongPlainPasswordIsRefused() {
        Secured.refuses(SaslAuthenticationException.class, Secured.plain("LOGIN", "alice", "wrong"));
        Secured.refuses(SaslAuthenticationException.class, Secured.plain("LOGIN", "stranger", "alice-secret"));
    }

    public static void scramPasswordsLetIn() throws Exception {
        String user = Secured.scramUser("a \u00fcml\u00e4ut", ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512);
        Secured.letsIn(user, Secured.scram("LOGIN", SHA_256, user, "a \u00fcml\u00e4ut"));
        Secured.letsIn(user, Secured.scram("LOGIN", SHA_512, user, "a \u00fcml\u00e4ut"));
    }

    public static void wrongScramPasswordsAreRefused() throws Exception {
        String user = Secured.scramUser("right", ScramMechanism.SCRAM_SHA_512);
        Secured.refuses(SaslAuthenticationException.class, Secured.scram("LOGIN", SHA_512, user, "wrong"));
        Secured.refuses(SaslAuthenticationException.class, Secured.scram("LOGIN", SHA_512, "stranger", "right"));
        Secured.refuses(SaslAuthenticationException.class, Secured.scram("LOGIN", SHA_256, user, "right"));
    }

    public static void signedTokenLetsIn() throws Exception {
        Secured.letsIn("carol", Secured.bearer("LOGIN", Secured.issuing("carol", 300)));
    }

    public static void otherTokensAreRefused() {
        String issuer = Secured.of("issuer"), audience = Secured.of("audience");
        String expired = Secured.issue("key1", "carol", issuer, audience, -60);
        String ofAnotherKey = Secured.issue("other", "carol", issuer, audience, 300);
        String forAnotherService = Secured.issue("key1", "carol", issuer, "another", 300);
        String ofAnotherIssuer = Secured.issue("key1", "carol", "https://another.example", audience, 300);
        String changed = Secured.issuing("carol", 300).get().replaceFirst("\\.[^.]{20}", ".eyJzdWIiOiJib2IiLCJ4");
        for (String token : List.of(expired, ofAnotherKey, forAnotherService, ofAnotherIssuer, changed)) {
            Secured.refuses(SaslAuthenticationException.class, Secured.bearer("LOGIN", () -> token));
        }
    }

    public static void mechanismThatIsNotEnabledIsRefused() {
        Secured.refuses(UnsupportedSaslMechanismException.class, Secured.scram("STRICT", SHA_512, "alice", "alice-secret"));
        Secured.refuses(UnsupportedSaslMechanismException.class, Secured.bearer("STRICT", Secured.issuing("carol", 300)));
    }

    public static void clientWithoutTlsIsRefusedAtASecureListener() {
        Object[] login = Secured.with(Secured.plain("LOGIN", "alice", "alice-secret"), "security.protocol", "SASL_PLAINTEXT",
            "default.api.timeout.ms", 3000, "request.timeout.ms", 2000);
        // The protocols cannot talk about it: also with Kafka such a client tries until its time is up.
        Judge.fails(TimeoutException.class, () -> {
            try (Admin admin = Judge.admin(login)) {
                return admin.describeCluster().nodes().get();
            }
        });
    }

    // ---- again and again ----

    public static void producersLogInAgainBeforeTheirSessionEnds() throws Exception {
        String user = Secured.scramUser("right", ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512);
        Map<String, Object[]> logins = new LinkedHashMap<>();
        logins.put("alice", Secured.plain("SESSIONS", "alice", "alice-secret"));
        logins.put(user, Secured.scram("SESSIONS", SHA_256, user, "right"));
        logins.put(user + " ", Secured.scram("SESSIONS", SHA_512, user, "right"));
        logins.put("carol", Secured.bearer("SESSIONS", Secured.issuing("carol", 300)));
        List<Thread> threads = new ArrayList<>();
        Map<String, Throwable> failures = Collections.synchronizedMap(new LinkedHashMap<>());
        logins.forEach((name, login) -> threads.add(new Thread(() -> {
            try {
                staysLoggedIn(name.trim(), login);
            } catch (Throwable problem) {
                failures.put(name, problem);
            }
        })));
        for (Thread thread : threads) thread.start();
        for (Thread thread : threads) thread.join();
        Judge.same(Map.of(), failures);
    }

    public static void tokensThatExpireAreReplacedWhileTheProducerGoesOn() throws Exception {
        AtomicReference<Integer> issued = new AtomicReference<>(0);
        Supplier<String> tokens = Secured.issuing("carol", 4);
        staysLoggedIn("carol", Secured.bearer("LOGIN", () -> {
            issued.getAndUpdate(count -> count + 1);
            return tokens.get();
        }));
        Judge.that(issued.get() > 2, "new tokens were used: " + issued.get());
    }

    /** Produces until three sessions are over, on the same connections. */
    private static void staysLoggedIn(String user, Object... login) throws Exception {
        String topic = Judge.topic(1);
        Secured.allow(user, ResourceType.TOPIC, topic, AclOperation.WRITE);
        try (KafkaProducer<String, String> producer = Judge.producer(Secured.with(login, "retries", 0, "enable.idempotence", false))) {
            Judge.eventually("it has logged in again", () -> {
                Judge.send(producer, topic, 0, "again");
                Thread.sleep(20);
                return metric(producer, "successful-reauthentication-total") >= 3;
            });
            Judge.same(0.0, metric(producer, "failed-reauthentication-total"));
            Judge.same(0.0, metric(producer, "failed-authentication-total"));
            Judge.that(metric(producer, "connection-creation-total") <= 2, "connections are kept");
        }
    }

    private static double metric(KafkaProducer<String, String> producer, String name) {
        for (Metric metric : producer.metrics().values()) {
            boolean isWanted = metric.metricName().name().equals(name) && metric.metricName().group().equals("producer-metrics");
            if (isWanted) return (Double) metric.metricValue();
        }
        throw new AssertionError("no metric " + name);
    }

    // ---- revoked while connected ----

    public static void deletedUserIsRefusedWhenTheSessionEnds() throws Exception {
        String user = Secured.scramUser("right", ScramMechanism.SCRAM_SHA_512);
        Secured.endsWhen(Secured.scram("SESSIONS", SHA_512, user, "right"), () -> {
            try (Admin admin = Judge.admin()) {
                admin.alterUserScramCredentials(List.of(new UserScramCredentialDeletion(user, ScramMechanism.SCRAM_SHA_512))).all().get();
            }
            return null;
        });
    }

    public static void changedPasswordIsAskedForWhenTheSessionEnds() throws Exception {
        String user = Secured.scramUser("right", ScramMechanism.SCRAM_SHA_256);
        Secured.endsWhen(Secured.scram("SESSIONS", SHA_256, user, "right"), () -> {
            try (Admin admin = Judge.admin()) {
                ScramCredentialInfo info = new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096);
                admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion(user, info, "new"))).all().get();
            }
            return null;
        });
    }

    public static void tokenOfAnotherUserDoesNotContinueASession() throws Exception {
        AtomicReference<String> user = new AtomicReference<>("carol");
        Secured.endsWhen(Secured.bearer("LOGIN", () -> Secured.issuing(user.get(), 4).get()), () -> {
            user.set("dave");
            return null;
        });
    }

    public static void producerWhoseNewTokensAreWrongIsRefused() throws Exception {
        AtomicReference<String> key = new AtomicReference<>("key1");
        Supplier<String> tokens = () -> Secured.issue(key.get(), "carol", Secured.of("issuer"), Secured.of("audience"), 4);
        Secured.endsWhen(Secured.bearer("LOGIN", tokens), () -> {
            key.set("other");
            return null;
        });
    }
}
