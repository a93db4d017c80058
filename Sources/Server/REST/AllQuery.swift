import ThicketProtocol

/// An administrator's request for the changes of all users (wire contract, 8.2).
public struct AllQuery: Sendable, Equatable {
    /// The cv of the newest known change; nil: from now on.
    public var since: String?
    /// Whether each change includes the object as the change left it.
    public var wantsData = false
    /// Whether each change includes the name of its user.
    public var wantsUser = false
    /// Whether only the newest change of each object in one answer is included.
    public var isMostRecent = false
    /// `clientid`s whose changes are left out.
    public var skipped: [String] = []
    /// Changes of one answer, 1...`Limits.indexPageMax`.
    public var limit: Int = Limits.indexPageMax

    /// Most client ids that may be left out; further ones are ignored.
    static let skippedMax = 64

    /// All changes from now on, without data and user.
    public init() {}
}

/// The same request in the form for the readers.
public struct AllQuestion: Sendable {
    let app: AppID
    let name: BucketName
    /// nil: only the end of the log is wanted.
    let after: GlobalID?
    /// Whether to check that the log still reaches back to `after`.
    let isFirst: Bool
    let query: AllQuery
    /// For the cvs.
    let tag: UInt32
}

/// The result of reading a part of the log.
public struct AllPage: Sendable {
    /// One line of JSON each.
    var elements: [[UInt8]]
    /// The position up to which the log was read.
    var through: GlobalID
    /// Whether that is the end of the log.
    var isAtEnd: Bool
}

/// A change in any user's bucket.
public struct WideChange: Sendable {
    /// The change.
    public let change: ChangeRecord
    /// The user whose bucket it is in.
    public let user: UserID
}

/// A part of the log of all buckets of one name.
public struct WidePage: Sendable {
    /// Oldest first.
    public let changes: [WideChange]
    /// The position up to which the log was read.
    public let through: GlobalID
    /// Whether that was its end.
    public let isAtEnd: Bool

    /// Most positions read by one call, so that other requests do not wait long for the reader.
    public static let positionsMax = 20_000

    /// Creates a page of changes, oldest first.
    public init(changes: [WideChange], through: GlobalID, isAtEnd: Bool) {
        (self.changes, self.through, self.isAtEnd) = (changes, through, isAtEnd)
    }
}

extension ReadExecutor {
    /// - Returns: nil when changes above the position are no longer kept.
    func all(_ question: AllQuestion) throws(StoreError) -> AllPage? {
        let end = try reader.lastGlobalID()
        guard let after = question.after else { return AllPage(elements: [], through: end, isAtEnd: true) }
        guard after <= end else { return nil }
        if question.isFirst, try reader.floor(ofAll: question.name, in: question.app) > after { return nil }
        let page = try reader.changes(
            ofAll: question.name, in: question.app, after: after, limit: question.query.limit,
            byteLimit: limits.catchUpPageBytes)
        var changes = page.changes.filter { wide in
            !question.query.skipped.contains { $0.utf8.elementsEqual(wide.change.clientID.text.utf8) }
        }
        if question.query.isMostRecent { changes = Self.newest(changes) }
        var elements = [[UInt8]]()
        var bytes = 0
        for (place, wide) in changes.enumerated() {
            // Objects make an answer much larger than its changes; the rest is for the next answer.
            guard bytes < limits.catchUpPageBytes else {
                return AllPage(elements: elements, through: changes[place - 1].change.gid, isAtEnd: false)
            }
            elements.append(try element(wide, question))
            bytes += elements[place].count
        }
        return AllPage(elements: elements, through: page.through, isAtEnd: page.isAtEnd)
    }

    /// The newest change of each object, in their order.
    private static func newest(_ changes: [WideChange]) -> [WideChange] {
        struct Place: Hashable {
            let bucket: BucketRow
            let key: EntityKey
        }
        var seen = Set<Place>()
        return changes.reversed().filter { seen.insert(Place(bucket: $0.change.bucket, key: $0.change.key)).inserted }
            .reversed()
    }

    /// The form in which sockets receive a change, except that `id` includes the user: `USER/KEY`.
    private func element(_ wide: WideChange, _ question: AllQuestion) throws(StoreError) -> [UInt8] {
        let change = wide.change
        var writer = JSONWriter(reservingBytes: change.diff.count + 256)
        writer.raw("{\"clientid\":")
        writer.write(string: change.clientID.text)
        writer.raw(",\"cv\":")
        writer.write(string: codec.text(change.gid, tag: question.tag))
        writer.raw(",\"id\":")
        writer.write(string: "\(wide.user.text)/\(change.key.text)")
        switch change.kind {
        case .remove: writer.raw(",\"o\":\"-\"")
        case .modify:
            writer.raw(",\"o\":\"M\",\"v\":")
            writer.bytes.append(contentsOf: change.diff)
            if let source = change.sourceVersion {
                writer.raw(",\"sv\":")
                writer.write(source)
            }
        }
        writer.raw(",\"ev\":")
        writer.write(change.endVersion)
        writer.raw(",\"ccids\":[")
        writer.write(string: change.changeID.text)
        writer.raw("]")
        if question.query.wantsUser {
            writer.raw(",\"username\":")
            writer.write(string: try reader.name(of: wide.user, in: question.app)?.text ?? wide.user.text)
        }
        if question.query.wantsData, change.kind == .modify,
            let body = try reader.body(
                of: change.key, version: change.endVersion, in: change.bucket, upTo: change.gid)
        {
            writer.raw(",\"d\":")
            writer.bytes.append(contentsOf: body)
        }
        writer.raw("}")
        return writer.bytes
    }
}
