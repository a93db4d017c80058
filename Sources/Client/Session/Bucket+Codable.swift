import ThicketProtocol

#if canImport(FoundationEssentials)
    private import FoundationEssentials
#else
    private import Foundation
#endif

/// Typed access to objects by `Codable`.
extension Bucket {
    /// The object decoded as `type`; nil when it does not exist.
    ///
    /// - Throws: `invalidValue` when the object cannot be decoded as `type`.
    public func get<Value: Decodable>(_ key: String, as type: Value.Type) async throws(ClientError) -> Value? {
        guard let object = try await get(key) else { return nil }
        return try type.init(fromObject: object)
    }

    /// Makes the object equal to `value`. Keys that the type does not know are removed; `update(_:as:_:)` keeps them.
    ///
    /// - Throws: `invalidValue` when the value does not encode as a JSON object.
    public func set(_ key: String, to value: some Encodable) async throws(ClientError) {
        try await set(key, to: try JSONObject(encoding: value))
    }

    /// Decodes the object, lets `body` change the value, and sends the difference, atomically. Keys that the type does
    /// not know are kept.
    ///
    /// - Parameters:
    ///   - initial: the value to start from when the object does not exist.
    ///   - body: runs on the session's thread and must not block.
    ///   - key: the object's key.
    /// - Throws: `invalidValue` when the object cannot be decoded as the type; nothing is changed then.
    public func update<Value: Codable & Sendable>(
        _ key: String, as initial: Value, _ body: @Sendable (inout Value) -> Void
    ) async throws(ClientError) {
        let key = try Self.key(key)
        let bucket = bucket
        try await engine.act { (machine, now) throws(ClientError) in
            let object = try machine.object(bucket, key)
            var value = try object.map { (known) throws(ClientError) in try Value(fromObject: known) } ?? initial
            let before = try object == nil ? JSONObject() : JSONObject(encoding: value)
            body(&value)
            let after = try JSONObject(encoding: value)
            var result = object ?? JSONObject()
            for known in before.keys where !after.contains(known) { result[known] = nil }
            for pair in after.pairs { result[pair.key] = pair.value }
            return ((), try machine.set(bucket, key, to: result, now: now))
        }
    }
}

extension Decodable {
    fileprivate init(fromObject object: JSONObject) throws(ClientError) {
        do {
            self = try JSONDecoder().decode(Self.self, from: Data(object.serialized()))
        } catch {
            throw ClientError(.invalidValue, "the object does not have the shape of \(Self.self)")
        }
    }
}

extension JSONObject {
    fileprivate init(encoding value: some Encodable) throws(ClientError) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(value), let parsed = try? JSONValue(parsing: Array(data)),
            let object = parsed.objectValue
        else { throw ClientError(.invalidValue, "\(type(of: value)) does not encode as a JSON object") }
        self = object
    }
}
