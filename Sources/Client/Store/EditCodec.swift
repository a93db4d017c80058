import ThicketProtocol
import ThicketSealed

/// The file format of edits: the JSON of a diff, or `-` for a removal.
enum EditCodec {
    static func encode(_ edit: Edit?) -> [UInt8]? {
        switch edit {
        case nil: return nil
        case .remove: return [0x2D]
        case .modify(let diff):
            var writer = JSONWriter()
            diff.write(to: &writer)
            return writer.bytes
        }
    }

    /// - Throws: `store` when the bytes do not come from `encode`.
    static func decode(_ bytes: [UInt8]?) throws(ClientError) -> Edit? {
        guard let bytes else { return nil }
        if bytes == [0x2D] { return .remove }
        do {
            return .modify(try ObjectDiff(try JSONValue(parsing: bytes, maxDepth: JSONDocument.depthCeiling)))
        } catch {
            throw ClientError(.store, "an edit in the local store is damaged")
        }
    }

    /// The stored form of an object's edits in a sealed bucket; nil when it has none.
    static func encode(_ kept: SealedKept) -> [UInt8]? { kept.isEmpty ? nil : kept.json.serialized() }

    /// - Throws: `store` when the bytes do not come from `encode`.
    static func kept(_ bytes: [UInt8]) throws(ClientError) -> SealedKept {
        guard let kept = try object(bytes).flatMap({ SealedKept($0) }) else {
            throw ClientError(.store, "a sealed edit in the local store is damaged")
        }
        return kept
    }

    static func object(_ bytes: [UInt8]?) throws(ClientError) -> JSONObject? {
        guard let bytes else { return nil }
        if bytes.first == PackedEntity.mark, let object = PackedEntity.unpack(bytes) { return object }
        let value = try? JSONValue(parsing: bytes, maxDepth: JSONDocument.depthCeiling)
        guard let object = value?.objectValue else {
            throw ClientError(.store, "an object in the local store is damaged")
        }
        return object
    }
}
