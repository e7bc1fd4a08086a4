import java.nio.file.*;
import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.resource.ResourceType;

/** TLS: whom the client trusts, whom the broker trusts, and certificates that are renewed. */
public final class TlsChecks {

    public static void certificateLetsInByItsName() throws Exception {
        Secured.letsIn("billing", Secured.certificate("CERTIFICATES", Secured.of("stores") + "/billing.p12"));
    }

    public static void certificateIsTheUserWhomRulesName() throws Exception {
        String topic = Judge.topic(1);
        Secured.allow("billing", ResourceType.TOPIC, topic, AclOperation.WRITE);
        Object[] login = Secured.certificate("CERTIFICATES", Secured.of("stores") + "/nobody.p12");
        try (KafkaProducer<String, String> producer = Judge.producer(login)) {
            Judge.fails(TopicAuthorizationException.class, () -> {
                producer.send(new ProducerRecord<>(topic, "value")).get();
                return null;
            });
        }
    }

    public static void missingCertificateIsRefused() {
        Secured.refuses(SslAuthenticationException.class, Secured.certificate("CERTIFICATES", null));
    }

    public static void certificatesOfStrangersAndExpiredOnesAreRefused() {
        for (String file : List.of(Secured.of("stranger") + "/billing.p12", Secured.of("stores") + "/outdated.p12")) {
            Secured.refuses(SslAuthenticationException.class, Secured.certificate("CERTIFICATES", file));
        }
    }

    public static void olderTlsIsSpoken() throws Exception {
        Object[] login = Secured.certificate("CERTIFICATES", Secured.of("stores") + "/billing.p12");
        Secured.letsIn("billing", Secured.with(login, "ssl.enabled.protocols", "TLSv1.2", "ssl.protocol", "TLSv1.2"));
        Object[] without = Secured.certificate("CERTIFICATES", null);
        Secured.refuses(SslAuthenticationException.class,
            Secured.with(without, "ssl.enabled.protocols", "TLSv1.2", "ssl.protocol", "TLSv1.2"));
    }

    public static void clientRefusesABrokerWithAnotherAuthorityOrName() {
        Object[] login = Secured.plain("LOGIN", "alice", "alice-secret");
        Secured.refuses(SslAuthenticationException.class, Secured.with(login, Secured.trusting("stranger", "SASL_SSL")));
        String otherName = Secured.of("at.LOGIN").replace("127.0.0.1", "localhost");
        Secured.refuses(SslAuthenticationException.class, Secured.with(login, "bootstrap.servers", otherName));
    }

    /** As operators do it: the file is replaced, and the broker is told; a broker may notice by itself. */
    public static void certificateIsRenewedWhileClientsAreConnected() throws Exception {
        Object[] client = Secured.certificate("AGED", null);
        Secured.allow("ANONYMOUS", ResourceType.CLUSTER, "kafka-cluster", AclOperation.DESCRIBE);
        String topic = Judge.topic(1);
        show("outdated");
        Judge.eventually("the outdated certificate is shown", () -> isAlways(false, client));
        Secured.refuses(SslAuthenticationException.class, client);
        show("renewed");
        Judge.eventually("the renewed certificate is shown", () -> isAlways(true, client));
        try (KafkaProducer<String, String> producer = Judge.producer(client)) {
            producer.send(new ProducerRecord<>(topic, "with the renewed certificate")).get();
            show("outdated");
            Judge.eventually("the outdated certificate is shown", () -> isAlways(false, client));
            producer.send(new ProducerRecord<>(topic, "those who are connected go on")).get();
        } finally {
            show("renewed");
        }
        Judge.eventually("the renewed certificate is shown", () -> isAlways(true, client));
        Judge.same(2, Judge.values(topic, 1, "read_committed").size());
    }

    /** The threads of a broker may get the new certificate one after the other. */
    private static boolean isAlways(boolean isLetIn, Object... client) throws InterruptedException {
        for (int n = 0; n < 5; n++) if (Secured.isLetIn(client) != isLetIn) return false;
        return true;
    }

    private static void show(String certificate) throws Exception {
        Path file = Paths.get(Secured.of("stores"), "AGED.pem"), copy = Paths.get(Secured.of("stores"), "AGED.new");
        Files.copy(Paths.get(Secured.of("stores"), "AGED-" + certificate + ".pem"), copy, StandardCopyOption.REPLACE_EXISTING);
        Files.move(copy, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        try (Admin admin = Judge.admin()) {
            String node = admin.describeCluster().nodes().get().iterator().next().idString();
            BasicChecks.alter(admin, new ConfigResource(ConfigResource.Type.BROKER, node),
                "listener.name.aged.ssl.keystore.location", file.toString(), AlterConfigOp.OpType.SET);
        }
    }
}
