import ThicketProtocol

/// The content of the object `heads`, which every device of a bucket writes and reads: for each object, by its server
/// key, the newest position and head that a device has seen. It detects a server that leaves out whole objects or their
/// last operations: the dropped state is named here, and this object is chained itself.
///
/// `{"<server key>":["<first 8 bytes of the incarnation id>",position,"<head>"],…}`. An entry has two more members once
/// a user has replaced a history named here by the server's: position and head of the replaced one. A device with that
/// history learns from them that it was given up.
public enum SealedHeads {
    /// The app's key of the object.
    public static let appKey = "heads"
    /// Seconds between two writes of one device.
    public static let intervalSeconds: Int64 = 3_600

    /// Whether apps must not use this name for an object.
    public static func isReserved(_ name: String) -> Bool { name.utf8.elementsEqual(appKey.utf8) }

    /// An object that the server does not show as it was.
    public struct Finding: Sendable, Equatable {
        /// The object's server key.
        public var serverKey: String
        /// What does not fit.
        public var integrity: SealedIntegrity
    }

    /// The edit to write: the objects whose local state is newer than the entry.
    ///
    /// - Parameters:
    ///   - content: the current content of the object `heads`.
    ///   - logs: the logs of the changed objects, without the object `heads`.
    /// - Returns: an edit of the content; empty when nothing is newer.
    public static func edit(of content: JSONObject, for logs: some Sequence<SealedLog>) -> ObjectDiff {
        var operations = [(key: String, operation: Operation)]()
        for log in logs {
            let key = log.place.serverKey
            guard let head = log.chain[log.position] else { continue }
            let before = content[key].flatMap(Entry.init)
            if let before, before.tag == log.incarnationTag, before.position >= log.position { continue }
            let isSame = before?.tag == log.incarnationTag
            let value = Entry(
                tag: log.incarnationTag, position: log.position, head: head, rejected: isSame ? before?.rejected : nil
            ).json
            operations.append((key: key, operation: content.contains(key) ? .replace(value) : .insert(value)))
        }
        return ObjectDiff(operations)
    }

    /// The edit to write once the user has taken the server's history, so that the entry of the other history is not
    /// reported as an error again.
    ///
    /// - Returns: nil when the entry does not contradict the log.
    public static func correction(of content: JSONObject, for log: SealedLog) -> ObjectDiff? {
        let key = log.place.serverKey
        guard let entry = content[key].flatMap(Entry.init), entry.tag == log.incarnationTag,
            let head = log.chain[log.position]
        else { return nil }
        let isAhead = entry.position > log.position
        guard isAhead || log.chain[entry.position].map({ $0 != entry.head }) == true else { return nil }
        let value = Entry(
            tag: log.incarnationTag, position: log.position, head: head, rejected: (entry.position, entry.head)
        ).json
        return ObjectDiff([(key: key, operation: .replace(value))])
    }

    /// Compares the content with what this device holds, after it has read all of the server's state.
    ///
    /// - Parameters:
    ///   - content: of the object `heads`.
    ///   - log: returns the log of an object by its server key; nil for an unknown object.
    ///   - isDeleted: whether an unknown object was deleted, as far as this device knows.
    public static func findings(
        in content: JSONObject, log: (String) -> SealedLog?, isDeleted: (String) -> Bool
    ) -> [Finding] {
        content.pairs.compactMap { (key, value) in
            guard let entry = Entry(value) else { return nil }
            guard let log = log(key) else {
                return isDeleted(key) ? nil : Finding(serverKey: key, integrity: .removed)
            }
            // An entry of another incarnation cannot be compared.
            guard entry.tag == log.incarnationTag else { return nil }
            if let rejected = entry.rejected, log.chain[rejected.position] == rejected.head {
                return Finding(serverKey: key, integrity: .forked(at: entry.position + 1))
            }
            if entry.position > log.position {
                return Finding(serverKey: key, integrity: .rolledBack(to: log.position))
            }
            guard let own = log.chain[entry.position], own != entry.head else { return nil }
            return Finding(serverKey: key, integrity: .forked(at: entry.position))
        }
    }

    /// Whether the log is newer than its entry, as after two devices wrote at once: the entry must be written again.
    public static func isBehind(_ content: JSONObject, _ log: SealedLog) -> Bool {
        guard let entry = content[log.place.serverKey].flatMap(Entry.init) else { return false }
        return entry.tag == log.incarnationTag && entry.position < log.position
    }

    private struct Entry {
        var tag: UInt64
        var position: Int
        var head: Head
        /// The newest position and head of a history that a user has given up.
        var rejected: (position: Int, head: Head)?

        init(tag: UInt64, position: Int, head: Head, rejected: (position: Int, head: Head)?) {
            (self.tag, self.position, self.head, self.rejected) = (tag, position, head, rejected)
        }

        /// A value that is not a valid entry is ignored.
        init?(_ json: JSONValue) {
            guard let list = json.arrayValue, list.count == 3 || list.count == 5,
                let tag = list[0].stringValue.flatMap(AuthorID.init(text:)),
                let (position, head) = Self.place(list[1...])
            else { return nil }
            self.init(tag: tag.rawValue, position: position, head: head, rejected: nil)
            guard list.count == 5 else { return }
            guard let rejected = Self.place(list[3...]) else { return nil }
            self.rejected = rejected
        }

        private static func place(_ list: ArraySlice<JSONValue>) -> (Int, Head)? {
            guard let position = list.first?.intValue, position >= 0, position < 1 << 53,
                let head = list.dropFirst().first?.stringValue.flatMap(Head.init(text:))
            else { return nil }
            return (Int(position), head)
        }

        var json: JSONValue {
            var list: [JSONValue] = [.string(AuthorID(rawValue: tag).text)]
            for (position, head): (Int, Head) in [(position, head)] + (rejected.map { [$0] } ?? []) {
                list += [.number(JSONNumber(Int64(position))), .string(head.text)]
            }
            return .array(list)
        }
    }
}
