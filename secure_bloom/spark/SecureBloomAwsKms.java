/*
 * AWS KMS as a KMS for Spark: parquet-java wraps keys by Encrypt and unwraps them by Decrypt.  A
 * wrapped key is the base64 text of AWS's CiphertextBlob, as secure_bloom.encryption.kms.aws has it.
 *
 * The AWS SDK for Java 2 is found by reflection among the jars of the session: whoever reads S3 by
 * hadoop-aws has it (software.amazon.awssdk:bundle).  Credentials are those of the SDK's own chain:
 * environment, files, role of the machine or the pod.  Properties secure_bloom.aws.* hold no secret.
 *
 * Compiled by Janino, so: raw types, no lambdas, no diamonds.
 */
package secure_bloom.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.net.URI;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.crypto.KeyAccessDeniedException;
import org.apache.parquet.crypto.ParquetCryptoRuntimeException;
import org.apache.parquet.crypto.keytools.KmsClient;

public class SecureBloomAwsKms implements KmsClient {

    private static final String PREFIX = "secure_bloom.aws.";
    private static final String SDK = "software.amazon.awssdk.";
    private static final String SERVICE = SDK + "services.kms.";
    private static final Pattern ARN =
            Pattern.compile("(arn:[\\w-]+:kms):([a-z0-9-]+):(\\d+:(?:key|alias)/.+)");
    private static final Set TRANSIENT = new HashSet(Arrays.asList(new String[] {
        "DependencyTimeoutException", "InternalFailure", "KMSInternalException",
        "KeyUnavailableException", "LimitExceededException", "RequestLimitExceeded",
        "RequestTimeout", "ServiceUnavailable", "ServiceUnavailableException", "SlowDown",
        "Throttling", "ThrottlingException", "TooManyRequestsException"}));
    private static final Set MISFIT = new HashSet(Arrays.asList(new String[] {
        "IncorrectKeyException", "InvalidCiphertextException"}));

    private final Random random = new Random();
    private final Map clients = new HashMap();
    private final Map context = new HashMap();
    private Configuration configuration;

    public void initialize(
            Configuration configuration, String instanceId, String instanceUrl, String accessToken) {
        this.configuration = configuration;
        readContext(configuration.getTrimmed(PREFIX + "encryption_context", "{}"));
        sdk(SERVICE + "KmsClient");
    }

    public String wrapKey(byte[] keyBytes, String masterKeyId) {
        Object blob = ask("Encrypt", masterKeyId, "plaintext", keyBytes, "ciphertextBlob");
        return Base64.getEncoder().encodeToString(bytes(blob));
    }

    public byte[] unwrapKey(String wrappedKey, String masterKeyId) {
        byte[] blob;
        try {
            blob = Base64.getDecoder().decode(wrappedKey);
        } catch (IllegalArgumentException failure) {
            throw new ParquetCryptoRuntimeException(
                    "a wrapped key is not base64, as those of AWS are: another KMS wrapped it");
        }
        // The key's id makes AWS refuse a blob that another key wrapped.
        return bytes(ask("Decrypt", masterKeyId, "ciphertextBlob", blob, "plaintext"));
    }

    private Object ask(
            String operation, String masterKeyId, String field, byte[] content, String wanted) {
        String home = configuration.getTrimmed(PREFIX + "region", "");
        String region = home;
        String keyId = masterKeyId;
        Matcher arn = ARN.matcher(masterKeyId);
        if (arn.matches()) {
            // A multi-region key is asked for at home, where a replica of it is expected.
            if (!home.isEmpty() && arn.group(3).contains(":key/mrk-")) {
                keyId = arn.group(1) + ":" + home + ":" + arn.group(3);
            } else {
                region = arn.group(2);
            }
        }
        Object request = request(operation, keyId, field, content);
        long deadline = System.nanoTime()
                + configuration.getInt(PREFIX + "retry_seconds", 30) * 1000000000L;
        long limit = 100;
        while (true) {
            try {
                Object answer = call(SERVICE + "KmsClient", client(region), operation.toLowerCase(),
                        SERVICE + "model." + operation + "Request", request);
                return call(SERVICE + "model." + operation + "Response", answer, wanted, null, null);
            } catch (Refusal refusal) {
                long pause = limit / 4 + (long) (random.nextDouble() * limit * 3 / 4);
                if (!refusal.isPassing() || System.nanoTime() + pause * 1000000L > deadline) {
                    throw explained(refusal, operation, masterKeyId);
                }
                sleep(pause);
                limit = Math.min(5000, limit * 2);
            }
        }
    }

    private Object request(String operation, String keyId, String field, byte[] content) {
        String type = SERVICE + "model." + operation + "Request";
        String builder = type + "$Builder";
        try {
            Object building = call(type, null, "builder", null, null);
            call(builder, building, "keyId", "java.lang.String", keyId);
            Object blob = call(SDK + "core.SdkBytes", null, "fromByteArray", "[B", content);
            call(builder, building, field, SDK + "core.SdkBytes", blob);
            if (!context.isEmpty()) {
                call(builder, building, "encryptionContext", "java.util.Map", context);
            }
            return call(builder, building, "build", null, null);
        } catch (Refusal refusal) {
            throw explained(refusal, operation, keyId);
        }
    }

    private synchronized Object client(String region) throws Refusal {
        Object made = clients.get(region);
        if (made != null) {
            return made;
        }
        String builder = SERVICE + "KmsClientBuilder";
        Object building = call(SERVICE + "KmsClient", null, "builder", null, null);
        if (!region.isEmpty()) {
            Object of = call(SDK + "regions.Region", null, "of", "java.lang.String", region);
            call(builder, building, "region", SDK + "regions.Region", of);
        }
        String endpoint = configuration.getTrimmed(PREFIX + "endpoint_url", "");
        if (!endpoint.isEmpty()) {
            call(builder, building, "endpointOverride", "java.net.URI", URI.create(endpoint));
        }
        useApache(builder, building);
        made = call(builder, building, "build", null, null);
        clients.put(region, made);
        return made;
    }

    /* The bundle holds several HTTP clients, and the SDK refuses to choose. */
    private void useApache(String builder, Object building) throws Refusal {
        String apache = SDK + "http.apache.ApacheHttpClient";
        if (loaded(apache) != null) {
            Object client = call(apache, null, "builder", null, null);
            call(builder, building, "httpClientBuilder", SDK + "http.SdkHttpClient$Builder", client);
        }
    }

    private RuntimeException explained(Refusal refusal, String operation, String masterKeyId) {
        String what = "AWS KMS: " + operation + " under master key " + masterKeyId + ": " + refusal.reason;
        if (MISFIT.contains(refusal.code)) {
            return new ParquetCryptoRuntimeException(
                    what + ": it was wrapped by another key, or altered");
        }
        if (refusal.isPassing()) {
            return new ParquetCryptoRuntimeException("AWS KMS is not available: " + what);
        }
        return new KeyAccessDeniedException(
                what + "; check the key's id, region, state and policy, and the credentials");
    }

    private byte[] bytes(Object blob) {
        try {
            return (byte[]) call(SDK + "core.SdkBytes", blob, "asByteArray", null, null);
        } catch (Refusal refusal) {
            throw new ParquetCryptoRuntimeException("AWS KMS: " + refusal.reason);
        }
    }

    // Reflection.  Methods are looked up in the public types: those that implement them are not.

    private Object call(String type, Object target, String method, String parameter, Object argument)
            throws Refusal {
        try {
            Class[] parameters = parameter == null ? new Class[0] : new Class[] {sdk(parameter)};
            Object[] arguments = parameter == null ? new Object[0] : new Object[] {argument};
            return sdk(type).getMethod(method, parameters).invoke(target, arguments);
        } catch (InvocationTargetException failure) {
            throw refusalOf(failure.getCause());
        } catch (ReflectiveOperationException failure) {
            throw new ParquetCryptoRuntimeException(
                    "this AWS SDK is not one that is known: " + type + "." + method + ": "
                            + failure.getClass().getSimpleName());
        }
    }

    /* The SDK's error as ours, with its code alone: its text may repeat what was sent. */
    private Refusal refusalOf(Throwable failure) {
        String code = failure.getClass().getSimpleName();
        Class service = loaded(SDK + "awscore.exception.AwsServiceException");
        if (service == null || !service.isInstance(failure)) {
            boolean isPassing = failure instanceof IOException || failure.getCause() instanceof IOException;
            return new Refusal(code, code, isPassing);
        }
        try {
            Object details = service.getMethod("awsErrorDetails", new Class[0])
                    .invoke(failure, new Object[0]);
            Object status = service.getMethod("statusCode", new Class[0])
                    .invoke(failure, new Object[0]);
            if (details != null) {
                code = (String) sdk(SDK + "awscore.exception.AwsErrorDetails")
                        .getMethod("errorCode", new Class[0]).invoke(details, new Object[0]);
            }
            int number = ((Integer) status).intValue();
            return new Refusal(code, "HTTP " + number + " " + code,
                    TRANSIENT.contains(code) || number >= 500);
        } catch (ReflectiveOperationException unforeseen) {
            return new Refusal(code, code, false);
        }
    }

    private static Class sdk(String name) {
        Class found = loaded(name);
        if (found == null) {
            throw new ParquetCryptoRuntimeException(
                    "the AWS SDK for Java 2 is not among the jars of this session (no " + name
                            + "): add software.amazon.awssdk:bundle, which hadoop-aws brings");
        }
        return found;
    }

    private static Class loaded(String name) {
        ClassLoader[] loaders = new ClassLoader[] {
            Thread.currentThread().getContextClassLoader(), SecureBloomAwsKms.class.getClassLoader()};
        for (int i = 0; i < loaders.length; i++) {
            try {
                return Class.forName(name, true, loaders[i]);
            } catch (ClassNotFoundException failure) {
                // The next one.
            }
        }
        return null;
    }

    private void readContext(String text) {
        try {
            JsonNode pairs = new ObjectMapper().readTree(text);
            Iterator names = pairs.fieldNames();
            while (names.hasNext()) {
                String name = (String) names.next();
                context.put(name, ((JsonNode) pairs.get(name)).asText());
            }
        } catch (IOException failure) {
            throw new ParquetCryptoRuntimeException(PREFIX + "encryption_context is not JSON");
        }
    }

    private static void sleep(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException failure) {
            Thread.currentThread().interrupt();
            throw new ParquetCryptoRuntimeException("interrupted while waiting for the KMS");
        }
    }

    /* AWS's refusal of one call, or that there was no answer. */
    private static class Refusal extends Exception {
        final String code;
        final String reason;
        private final boolean passing;

        Refusal(String code, String reason, boolean passing) {
            super(reason);
            this.code = code;
            this.reason = reason;
            this.passing = passing;
        }

        boolean isPassing() {
            return passing;
        }
    }
}
