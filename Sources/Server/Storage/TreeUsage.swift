import ThicketProtocol

/// What a user's tree takes in the store.
public struct TreeUsage: Sendable, Hashable {
    /// Number of nodes.
    public var nodes: Int
    /// Bytes of their records in the written form. Records from before bytes were counted have none until their next
    /// change.
    public var bytes: Int64
    /// Blobs and open uploads of the user in the app, also blobs to which no node refers.
    public var blobs: BlobUsage

    /// A usage.
    init(nodes: Int = 0, bytes: Int64 = 0, blobs: BlobUsage = BlobUsage()) {
        (self.nodes, self.bytes, self.blobs) = (nodes, bytes, blobs)
    }

    /// The answer to `GET usage`.
    var object: JSONObject {
        func sum(_ count: Int, _ bytes: Int64) -> JSONValue {
            ["count": .number(JSONNumber(Int64(count))), "bytes": .number(JSONNumber(bytes))]
        }
        return [
            "nodes": sum(nodes, bytes), "blobs": sum(blobs.count, blobs.bytes),
            "uploads": sum(blobs.openCount, blobs.openBytes),
        ]
    }
}
