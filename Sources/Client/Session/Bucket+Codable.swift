import ThicketProtocol

#if canImport(FoundationEssentials)
    private import FoundationEssentials
#else
    private import Foundation
#endif

/// Objects as values of the app's own types.
extension Bucket {
    /// The object read as `type`; nil when there is none.
    ///
    /// - Throws: `invalidValue` when it does not have that shape.
    public func get<Value: Decodable>(_ key: String, as type: Value.Type) async throws(ClientError) -> Value? {
        guard let object = try await get(key) else { return nil }
        return try type.init(fromObject: object)
    }

    /// Makes the object equal to `value`. Keys that the type does not know are removed: keep them by
    /// `update(_:as:_:)`.
    ///
    /// - Throws: `invalidValue` when the value does not encode as a JSON object.
    public func set(_ key: String, to value: some Encodable) async throws(ClientError) {
        try await set(key, to: try JSONObject(encoding: value))
    }

    /// Reads the object as a value, lets `body` change it, and sends the difference, with nothing in between. Keys that
    /// the type does not know stay as they are.
    ///
    /// - Parameters:
    ///   - initial: what to start from when there is no object.
    ///   - body: runs on the session's thread: must not block.
    /// - Throws: `invalidValue` when the object does not have that shape; nothing is changed then.
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
