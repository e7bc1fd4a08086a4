"""What all resources of API v3 share: kind, metadata and links."""

from dataclasses import dataclass
from urllib.parse import quote

from pydantic import BaseModel, Field


class ResourceMetadata(BaseModel):
    """The URL and name of a resource."""

    self: str = Field(
        description="The URL of this resource.", examples=["http://localhost:8082/v3/clusters/c-1/topics/orders"]
    )
    resource_name: str | None = Field(
        default=None,
        description="Its name, independent of the server's URL.",
        examples=["crn:///kafka=c-1/topic=orders"],
    )


class CollectionMetadata(BaseModel):
    """The URL of a collection."""

    self: str = Field(
        description="The URL of this collection.", examples=["http://localhost:8082/v3/clusters/c-1/topics"]
    )
    next: str | None = Field(
        default=None, description="The URL of the next page; null if this is all.", examples=[None]
    )


class Relationship(BaseModel):
    """A link to a related resource."""

    related: str = Field(
        description="The URL of the resource.", examples=["http://localhost:8082/v3/clusters/c-1/brokers/1"]
    )


class Resource(BaseModel):
    """The fields of every resource; subclasses give `kind` a default."""

    kind: str = Field(description="The kind of this object.")
    metadata: ResourceMetadata = Field(description="Its URL and name.")


class ResourceCollection(BaseModel):
    """The fields of every collection; subclasses give `kind` a default and add `data`."""

    kind: str = Field(description="The kind of this object.")
    metadata: CollectionMetadata = Field(description="Its URL and name.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Creates the URLs and names of the resources of one cluster."""

    base: str
    """Where clients reach this proxy, such as `http://localhost:8082`."""
    cluster_id: str

    def url(self, *parts: str | int) -> str:
        """The URL of a resource at this path under the cluster."""
        path = ("clusters", self.cluster_id, *parts)
        return "/".join([f"{self.base}/v3", *(quote(str(part), safe="-._~:") for part in path)])

    def name(self, *parts: str | int) -> str:
        """The name of a resource of the cluster, from alternating kinds and names."""
        pairs = ("kafka", self.cluster_id, *parts)
        return f"crn:///{'/'.join(f'{kind}={name}' for kind, name in zip(pairs[::2], pairs[1::2], strict=True))}"

    def related(self, *parts: str | int) -> Relationship:
        """A link to a related resource."""
        return Relationship(related=self.url(*parts))

    def resource(self, path: tuple[str | int, ...], name: tuple[str | int, ...]) -> ResourceMetadata:
        """The metadata of a resource, by its path and name under the cluster."""
        return ResourceMetadata(self=self.url(*path), resource_name=self.name(*name))

    def collection(self, *parts: str | int) -> CollectionMetadata:
        """The metadata of a collection that has a single page."""
        return CollectionMetadata(self=self.url(*parts))
