import ThicketProtocol

/// Applies logged diffs to a body. Every logged diff was applied successfully before it was written, so a diff that
/// does not fit now means that the log is corrupt.
enum BodyReplay {
    /// - Parameters:
    ///   - diffs: each one is the JSON of `v`; oldest first.
    ///   - base: JSON of the body before the first diff; nil for `{}`.
    ///   - gid: the change that the result belongs to, for the error message.
    static func apply(_ diffs: [[UInt8]], to base: [UInt8]?, upTo gid: GlobalID) throws(StoreError) -> [UInt8] {
        if diffs.isEmpty, let base { return base }
        if base == nil, diffs.count == 1, let body = created(by: diffs[0]) { return body }
        var object = try base.map { (base) throws(StoreError) in try parse(base, gid) } ?? JSONObject()
        for diff in diffs { object = try apply(diff, to: object, gid) }
        return object.serialized()
    }

    static func apply(_ diff: [UInt8], to object: JSONObject, _ gid: GlobalID) throws(StoreError) -> JSONObject {
        do {
            let document = try JSONDocument(parsing: diff, maxDepth: JSONDocument.depthCeiling)
            return try JSONDiff.apply(try ObjectDiff(document.root), to: object)
        } catch {
            throw StoreError(.corrupt, "a logged diff before change \(gid) does not fit its object")
        }
    }

    /// Returns the object that a diff from `{}` creates, if the diff only adds values; nil for any other diff. The text
    /// of the values is copied unchanged, because the log writes diffs in the same format as bodies.
    static func created(by diff: [UInt8]) -> [UInt8]? {
        guard let root = try? JSONDocument(parsing: diff, maxDepth: JSONDocument.depthCeiling).root,
            root.kind == .object
        else { return nil }
        var writer = JSONWriter(reservingBytes: diff.count)
        var isFirst = true
        writer.raw(byte: UInt8(ascii: "{"))
        for (key, operation) in root.members {
            guard operation.count == 2, let name = operation["o"], let value = operation["v"],
                name.rawBytes.elementsEqual([0x22, 0x2B, 0x22])
            else { return nil }
            if !isFirst { writer.raw(byte: UInt8(ascii: ",")) }
            isFirst = false
            writer.raw(key.rawBytes)
            writer.raw(byte: UInt8(ascii: ":"))
            writer.raw(value.rawBytes)
        }
        writer.raw(byte: UInt8(ascii: "}"))
        return writer.bytes
    }

    static func parse(_ body: [UInt8], _ gid: GlobalID) throws(StoreError) -> JSONObject {
        let value: JSONValue
        do {
            value = try JSONValue(parsing: body, maxDepth: JSONDocument.depthCeiling)
        } catch {
            throw StoreError(.corrupt, "the stored body before change \(gid) is not JSON")
        }
        guard let object = value.objectValue else {
            throw StoreError(.corrupt, "the stored body before change \(gid) is not an object")
        }
        return object
    }
}
