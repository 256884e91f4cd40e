"""A repository of jars in a folder, with as little in it as ivy.xml asks for."""

import io
import zipfile
from pathlib import Path

SPARK = "org.apache.spark"
CONNECTOR, TOKENS = "spark-sql-kafka-0-10_2.13", "spark-token-provider-kafka-0-10_2.13"

_POM = """<project><modelVersion>4.0.0</modelVersion>
<groupId>{group}</groupId><artifactId>{name}</artifactId><version>{revision}</version>
<dependencies>{needs}</dependencies></project>"""
_NEED = """<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>
</dependency>"""


class Mirror:
    """Modules in *root*, laid out as Maven does."""

    def __init__(self, root: Path):
        self.root = root

    def add(self, group, name, revision, *needs):
        """Add a module that needs others."""
        folder = self.root / group.replace(".", "/") / name / revision
        folder.mkdir(parents=True)
        needed = "".join(_NEED.format(*need) for need in needs)
        pom = _POM.format(group=group, name=name, revision=revision, needs=needed)
        (folder / f"{name}-{revision}.pom").write_text(pom)
        jar = io.BytesIO()
        with zipfile.ZipFile(jar, "w") as written:
            written.writestr("name", f"{name} {revision}")
        (folder / f"{name}-{revision}.jar").write_bytes(jar.getvalue())

    def add_broker(self):
        self.add("org.slf4j", "slf4j-simple", "1.7.36")
        self.add("org.apache.kafka", "kafka_2.13", "3.9.2")

    def add_connector(self, revision, *, tokens):
        """Add a connector with what it needs; of what PySpark has, nothing is here."""
        clients = ("org.apache.kafka", "kafka-clients", "3.9.1")
        pool = ("org.apache.commons", "commons-pool2", "2.13.1")
        hadoop = ("org.apache.hadoop", "hadoop-client-runtime", "3.4.2")
        scala = ("org.scala-lang", "scala-library", "2.13.17")
        needs = ((SPARK, TOKENS, revision), clients, pool, scala)
        self.add(SPARK, CONNECTOR, revision, *needs)
        self.add(SPARK, TOKENS, tokens, hadoop, clients)
        for module in (clients, pool):
            if not (self.root / module[0].replace(".", "/") / module[1]).exists():
                self.add(*module)

    def settings(self, path: Path, root: str = "") -> Path:
        """Write an Ivy settings file that takes everything from here."""
        path.write_text(
            '<ivysettings><settings defaultResolver="here"/><resolvers>'
            f'<ibiblio name="here" m2compatible="true" root="{root or self.root.as_uri()}/"/>'
            "</resolvers></ivysettings>"
        )
        return path
