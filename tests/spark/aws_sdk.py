"""A stand-in for the AWS SDK for Java 2, whose jars no Python package brings.

Its classes have the names and signatures that our class on the JVM looks up; its client speaks the
JSON of AWS with a server, such as moto's.  It shows that our class keeps to the SDK's contract as
documented; that the real SDK keeps it too, no test here can show.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import zipfile
from pathlib import Path

from secure_bloom.spark.jvm import java, spark_jars

_COMPILER = "org.codehaus.commons.compiler.samples.CompilerDemo"
_SDK = "software.amazon.awssdk"

_BYTES = """
public final class SdkBytes {
    private final byte[] content;
    private SdkBytes(byte[] content) { this.content = content; }
    public static SdkBytes fromByteArray(byte[] content) { return new SdkBytes(content); }
    public byte[] asByteArray() { return content; }
}
"""
_REGION = """
public final class Region {
    private final String id;
    private Region(String id) { this.id = id; }
    public static Region of(String id) { return new Region(id); }
    public String id() { return id; }
}
"""
_EXCEPTION = """
public class AwsServiceException extends RuntimeException {
    private final int status;
    private final AwsErrorDetails details;
    public AwsServiceException(int status, String code, String text) {
        super(text);
        this.status = status;
        details = new AwsErrorDetails(code);
    }
    public int statusCode() { return status; }
    public AwsErrorDetails awsErrorDetails() { return details; }
}
"""
_DETAILS = """
public class AwsErrorDetails {
    private final String code;
    public AwsErrorDetails(String code) { this.code = code; }
    public String errorCode() { return code; }
}
"""
_REQUEST = """
import java.util.Map;
import software.amazon.awssdk.core.SdkBytes;
public final class {operation}Request {{
    public String keyId;
    public SdkBytes content;
    public Map context;
    public static Builder builder() {{ return new BuilderImpl(); }}
    public interface Builder {{
        Builder keyId(String keyId);
        Builder {field}(SdkBytes content);
        Builder encryptionContext(Map context);
        Object build();
    }}
    static final class BuilderImpl implements Builder {{
        private final {operation}Request made = new {operation}Request();
        public Builder keyId(String keyId) {{ made.keyId = keyId; return this; }}
        public Builder {field}(SdkBytes content) {{ made.content = content; return this; }}
        public Builder encryptionContext(Map context) {{ made.context = context; return this; }}
        public Object build() {{ return made; }}
    }}
}}
"""
_RESPONSE = """
import software.amazon.awssdk.core.SdkBytes;
public final class {operation}Response {{
    private final SdkBytes content;
    public {operation}Response(SdkBytes content) {{ this.content = content; }}
    public SdkBytes {field}() {{ return content; }}
}}
"""
_BUILDER = """
import java.net.URI;
import software.amazon.awssdk.regions.Region;
public interface KmsClientBuilder {
    KmsClientBuilder region(Region region);
    KmsClientBuilder endpointOverride(URI endpoint);
    Object build();
}
"""
_CLIENT = """
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.util.Base64;
import java.util.Iterator;
import java.util.Map;
import software.amazon.awssdk.awscore.exception.AwsServiceException;
import software.amazon.awssdk.core.SdkBytes;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.kms.model.DecryptRequest;
import software.amazon.awssdk.services.kms.model.DecryptResponse;
import software.amazon.awssdk.services.kms.model.EncryptRequest;
import software.amazon.awssdk.services.kms.model.EncryptResponse;
public class KmsClient {
    private String region;
    private URI endpoint;
    public static KmsClientBuilder builder() { return new BuilderImpl(); }
    public EncryptResponse encrypt(EncryptRequest r) {
        return new EncryptResponse(ask("Encrypt", r.keyId, "Plaintext", r.content, r.context,
            "CiphertextBlob"));
    }
    public DecryptResponse decrypt(DecryptRequest r) {
        return new DecryptResponse(ask("Decrypt", r.keyId, "CiphertextBlob", r.content, r.context,
            "Plaintext"));
    }
    private SdkBytes ask(String operation, String keyId, String field, SdkBytes content,
            Map context, String wanted) {
        ObjectMapper json = new ObjectMapper();
        ObjectNode body = json.createObjectNode();
        body.put("KeyId", keyId);
        body.put(field, Base64.getEncoder().encodeToString(content.asByteArray()));
        if (context != null) {
            ObjectNode pairs = body.putObject("EncryptionContext");
            Iterator names = context.keySet().iterator();
            while (names.hasNext()) {
                String name = (String) names.next();
                pairs.put(name, (String) context.get(name));
            }
        }
        try {
            HttpURLConnection c = (HttpURLConnection) endpoint.toURL().openConnection();
            c.setDoOutput(true);
            c.setRequestProperty("Content-Type", "application/x-amz-json-1.1");
            c.setRequestProperty("X-Amz-Target", "TrentService." + operation);
            c.setRequestProperty("Authorization", "AWS4-HMAC-SHA256 Credential=testing/20260101/"
                + region + "/kms/aws4_request, SignedHeaders=host, Signature=0");
            c.getOutputStream().write(json.writeValueAsBytes(body));
            int status = c.getResponseCode();
            InputStream stream = status < 400 ? c.getInputStream() : c.getErrorStream();
            JsonNode answer = json.readTree(stream.readAllBytes());
            if (status >= 400) {
                String code = ((JsonNode) answer.path("__type")).asText();
                throw new AwsServiceException(status, code, answer.toString());
            }
            return SdkBytes.fromByteArray(
                Base64.getDecoder().decode(((JsonNode) answer.path(wanted)).asText()));
        } catch (IOException failure) {
            throw new RuntimeException("no connection", failure);
        }
    }
    static final class BuilderImpl implements KmsClientBuilder {
        private final KmsClient made = new KmsClient();
        public KmsClientBuilder region(Region region) { made.region = region.id(); return this; }
        public KmsClientBuilder endpointOverride(URI endpoint) {
            made.endpoint = endpoint;
            return this;
        }
        public Object build() { return made; }
    }
}
"""
_SOURCES = {
    "core.SdkBytes": _BYTES,
    "regions.Region": _REGION,
    "awscore.exception.AwsServiceException": _EXCEPTION,
    "awscore.exception.AwsErrorDetails": _DETAILS,
    "services.kms.KmsClientBuilder": _BUILDER,
    "services.kms.KmsClient": _CLIENT,
    **{
        f"services.kms.model.{operation}{kind}": source.format(operation=operation, field=field)
        for kind, source, fields in (
            ("Request", _REQUEST, ("plaintext", "ciphertextBlob")),
            ("Response", _RESPONSE, ("ciphertextBlob", "plaintext")),
        )
        for operation, field in zip(("Encrypt", "Decrypt"), fields, strict=True)
    },
}


def stand_in_jar(folder: Path) -> Path:
    """The jar of the stand-in, compiled into ``folder``."""
    with tempfile.TemporaryDirectory(dir=folder) as work:
        files = [_write(Path(work), name, source) for name, source in _SOURCES.items()]
        classes = Path(work, "classes")
        classes.mkdir()
        class_path = os.pathsep.join(map(str, spark_jars()))
        command = [str(java()), "-cp", class_path, _COMPILER, "-d", str(classes)]
        subprocess.run(
            [*command, "-classpath", class_path, *files], check=True, capture_output=True
        )
        jar = folder / "aws-sdk-stand-in.jar"
        with zipfile.ZipFile(jar, "w") as archive:
            for path in classes.rglob("*.class"):
                archive.write(path, path.relative_to(classes))
    return jar


def _write(folder: Path, name: str, source: str) -> str:
    package, _, class_name = f"{_SDK}.{name}".rpartition(".")
    path = folder / package.replace(".", "/") / f"{class_name}.java"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"package {package};\n{source}")
    return str(path)
