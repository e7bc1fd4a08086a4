"""What all resources of API v3 share: what they are, where they are, and where to go from there."""

from dataclasses import dataclass
from urllib.parse import quote

from pydantic import BaseModel, Field


class ResourceMetadata(BaseModel):
    """Where a resource is found."""

    self: str = Field(
        description="The address of this resource.", examples=["http://localhost:8082/v3/clusters/c-1/topics/orders"]
    )
    resource_name: str | None = Field(
        default=None, description="Its name, whatever the server is called.", examples=["crn:///kafka=c-1/topic=orders"]
    )


class CollectionMetadata(BaseModel):
    """Where a collection is found."""

    self: str = Field(
        description="The address of this collection.", examples=["http://localhost:8082/v3/clusters/c-1/topics"]
    )
    next: str | None = Field(default=None, description="The next page; null: all is here.", examples=[None])


class Relationship(BaseModel):
    """Another resource that belongs to this one."""

    related: str = Field(description="Its address.", examples=["http://localhost:8082/v3/clusters/c-1/brokers/1"])


class Resource(BaseModel):
    """What every single resource has; subclasses give `kind` a default."""

    kind: str = Field(description="What this is.")
    metadata: ResourceMetadata = Field(description="Where this is.")


class ResourceCollection(BaseModel):
    """What every collection has; subclasses give `kind` a default and add `data`."""

    kind: str = Field(description="What this is.")
    metadata: CollectionMetadata = Field(description="Where this is.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Addresses and names in one cluster, as its resources tell them."""

    base: str
    """Where clients find this proxy, such as `http://localhost:8082`."""
    cluster_id: str

    def url(self, *parts: str | int) -> str:
        """The address of what lies under the cluster at this path."""
        path = ("clusters", self.cluster_id, *parts)
        return "/".join([f"{self.base}/v3", *(quote(str(part), safe="-._~:") for part in path)])

    def name(self, *parts: str | int) -> str:
        """The resource name of what belongs to the cluster: kinds and their names by turns."""
        pairs = ("kafka", self.cluster_id, *parts)
        return f"crn:///{'/'.join(f'{kind}={name}' for kind, name in zip(pairs[::2], pairs[1::2], strict=True))}"

    def related(self, *parts: str | int) -> Relationship:
        """The way to another resource."""
        return Relationship(related=self.url(*parts))

    def resource(self, path: tuple[str | int, ...], name: tuple[str | int, ...]) -> ResourceMetadata:
        """The metadata of a resource, by its path and name under the cluster."""
        return ResourceMetadata(self=self.url(*path), resource_name=self.name(*name))

    def collection(self, *parts: str | int) -> CollectionMetadata:
        """The metadata of a collection that is answered as a whole."""
        return CollectionMetadata(self=self.url(*parts))
