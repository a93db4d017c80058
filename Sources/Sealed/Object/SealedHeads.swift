import ThicketProtocol

/// The content of the object `heads`, which every device of a bucket writes into and reads: of each object, by its
/// server key, the newest position and head that somebody has seen. A server that leaves out whole objects, or their
/// last operations, is found by it: what it dropped is named here, and what names it is chained itself.
///
/// `{"<server key>":["<first 8 bytes of the incarnation id>",position,"<head>"],…}`
public enum SealedHeads {
    /// The app's key of the object.
    public static let appKey: String = "heads"
    /// Seconds from one writing of a device to its next.
    public static let intervalSeconds: Int64 = 3_600

    /// Something that the server does not show as it was.
    public struct Finding: Sendable, Equatable {
        public var serverKey: String
        public var integrity: SealedIntegrity
    }

    /// What to write: the objects that are further here than there.
    ///
    /// - Parameters:
    ///   - content: of the object `heads` as it is.
    ///   - logs: of the objects that have changed, without that object itself.
    /// - Returns: an edit of it; empty when there is nothing to say.
    public static func edit(of content: JSONObject, for logs: some Sequence<SealedLog>) -> ObjectDiff {
        var operations: [(key: String, operation: Operation)] = []
        for log: SealedLog in logs {
            let key: String = log.place.serverKey
            guard let head: Head = log.chain[log.position] else { continue }
            let before: Entry? = content[key].flatMap(Entry.init)
            if let before, before.tag == log.incarnationTag, before.position >= log.position { continue }
            let value: JSONValue = Entry(tag: log.incarnationTag, position: log.position, head: head).json
            operations.append((key: key, operation: content.contains(key) ? .replace(value) : .insert(value)))
        }
        return ObjectDiff(operations)
    }

    /// Compares what is written there with what this device holds, having read all that the server has to say.
    ///
    /// - Parameters:
    ///   - content: of the object `heads`.
    ///   - log: of an object by its server key; nil when there is none here.
    ///   - isDeleted: whether an object that is not here was deleted, as far as this device knows.
    public static func findings(
        in content: JSONObject, log: (String) -> SealedLog?, isDeleted: (String) -> Bool
    ) -> [Finding] {
        content.pairs.compactMap { (key, value) in
            guard let entry: Entry = .init(value) else { return nil }
            guard let log: SealedLog = log(key) else {
                return isDeleted(key) ? nil : Finding(serverKey: key, integrity: .removed)
            }
            // Of another incarnation nothing can be said.
            guard entry.tag == log.incarnationTag else { return nil }
            if entry.position > log.position {
                return Finding(serverKey: key, integrity: .rolledBack(to: log.position))
            }
            guard let own: Head = log.chain[entry.position], own != entry.head else { return nil }
            return Finding(serverKey: key, integrity: .forked(at: entry.position))
        }
    }

    private struct Entry {
        var tag: UInt64
        var position: Int
        var head: Head

        init(tag: UInt64, position: Int, head: Head) { (self.tag, self.position, self.head) = (tag, position, head) }

        /// What somebody has written that is no entry says nothing.
        init?(_ json: JSONValue) {
            guard let list: [JSONValue] = json.arrayValue, list.count == 3,
                let tag: AuthorID = list[0].stringValue.flatMap(AuthorID.init(text:)),
                let position: Int64 = list[1].intValue, position >= 0, position < 1 << 53,
                let head: Head = list[2].stringValue.flatMap(Head.init(text:))
            else { return nil }
            self.init(tag: tag.rawValue, position: Int(position), head: head)
        }

        var json: JSONValue {
            [.string(AuthorID(rawValue: tag).text), .number(JSONNumber(Int64(position))), .string(head.text)]
        }
    }
}
