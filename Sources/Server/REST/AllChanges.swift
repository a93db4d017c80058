import ThicketProtocol

/// What an administrator wants to see of all users' changes (wire contract, 8.2).
public struct AllQuery: Sendable, Equatable {
    /// cv of the newest change that is known; nil: from now on.
    public var since: String?
    /// With each change the object as it left it.
    public var wantsData: Bool = false
    /// With each change the name of its user.
    public var wantsUser: Bool = false
    /// Of one answer's changes of an object only the newest.
    public var isMostRecent: Bool = false
    /// `clientid`s whose changes are left out.
    public var skipped: [String] = []
    /// Changes of one answer, 1...`Limits.indexPageMax`.
    public var limit: Int = Limits.indexPageMax

    /// Client ids that may be left out at most; what comes behind is not looked at.
    static let skippedMax = 64

    public init() {}
}

/// The same as readers are asked it.
public struct AllQuestion: Sendable {
    let app: AppID
    let name: BucketName
    /// nil: nothing is wanted but where the log ends.
    let after: GlobalID?
    /// Whether what is wanted is still kept is to be looked at.
    let isFirst: Bool
    let query: AllQuery
    /// For the cvs.
    let tag: UInt32
}

/// What was found in a part of the log.
public struct AllPage: Sendable {
    /// One line of JSON each.
    var elements: [[UInt8]]
    /// Looked at up to here.
    var through: GlobalID
    /// That is the end of the log.
    var isAtEnd: Bool
}

/// A change of somebody's bucket.
public struct WideChange: Sendable {
    public let change: ChangeRecord
    public let user: UserID
}

/// A part of the log of all buckets of one name.
public struct WidePage: Sendable {
    /// Oldest first.
    public let changes: [WideChange]
    /// The log was looked at up to here.
    public let through: GlobalID
    /// That was its end.
    public let isAtEnd: Bool

    /// Positions looked at by one call: others wait no longer for the reader.
    public static let positionsMax = 20_000

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
            // Objects make an answer much larger than the changes of it: what does not go in is for the next one.
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

    /// As sockets are told of a change, but that `id` names the user, too: `USER/KEY`.
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
