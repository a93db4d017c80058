import ThicketCrypto
import ThicketProtocol
import ThicketTreeShape

/// Answers the hub's questions from one reader; belongs to the thread that made it.
///
/// It writes whole messages, so that the loop only passes them on.
public final class ReadExecutor {
    let reader: any StoreReader
    let codec: ChangeVersionCodec
    /// Bounds of the answers from now on.
    public var limits: ServerLimits
    private let pages: PageCache

    /// - Parameter pages: shared by the executors of one store; nil for a separate cache.
    public init(
        reader: any StoreReader, codec: ChangeVersionCodec, limits: ServerLimits, pages: PageCache? = nil
    ) {
        self.reader = reader
        self.codec = codec
        self.limits = limits
        self.pages = pages ?? PageCache(bytesMax: limits.indexCacheBytes)
    }

    /// Never throws: a store that cannot be read is an answer too.
    public func answer(_ request: ReadRequest) -> ReadAnswer {
        do {
            return try read(request)
        } catch {
            return .failed(error)
        }
    }

    private func read(_ request: ReadRequest) throws(StoreError) -> ReadAnswer {
        let channel = request.origin.channel
        switch request.question {
        case .grant(let token):
            return .grant(try reader.grant(tokenHash: Hash.sha256(Array(token.utf8))))
        case .adminGrant(let key, let app, let user):
            guard try reader.isAdminKey(hash: Hash.sha256(Array(key.utf8)), of: app) else { return .grant(nil) }
            // A user that is being erased is refused, though some of the data still exists.
            guard try !reader.hasEnded(user, in: app) else { return .ended }
            return .grant(TokenGrant(app: app, user: user, isReadOnly: false))
        case .open(let id):
            let record = try reader.bucket(id)
            if let record { return .opened(record, buckets: 0, mode: record.mode) }
            return .opened(
                nil, buckets: try reader.buckets(of: id.app, user: id.user).count,
                mode: try reader.mode(ofNew: id.name, in: id.app))
        case .index(let query, let tag):
            return try index(query, tag: tag, channel: channel)
        case .membership(let member):
            guard let record = try reader.bucket(member.tree) else { return .membership(isReader: false, head: 0) }
            let reads = BranchReads(reader: reader, bucket: record.row, member: member)
            return .membership(isReader: try reads.isReader(), head: record.head)
        case .entity(let key, let version, let bucket, let upTo, let member):
            guard let name = try? EntityKey(key),
                try member.map({ (member) throws(StoreError) in
                    try BranchReads(reader: reader, bucket: bucket, member: member).permits(name, version)
                }) ?? true
            else {
                return .entity(Reply.entity(channel, key: key, version: version, body: nil))
            }
            let body = try reader.body(of: name, version: version, in: bucket, upTo: upTo)
            return .entity(Reply.entity(channel, key: key, version: version, body: body))
        case .removed(let request, let bucket, let upTo):
            let page = try reader.removedPage(request, in: bucket, upTo: upTo)
            return .entity(Reply.removed(channel, page))
        case .changes(let bucket, let tag, let after, let upTo, let member):
            return try changes(bucket, tag: tag, after: after, upTo: upTo, member: member, channel: channel)
        case .object(let key, let version, let bucket, let upTo):
            return try object(key, version, in: bucket, upTo: upTo)
        case .children(let query, let cursor, let bucket, let tag, let upTo, let member):
            return try children(query, cursor, in: bucket, tag: tag, upTo: upTo, member)
        case .usage(let owner, let bucket): return .usage(try reader.usage(of: owner, in: bucket))
        case .inboxPolicy(let app, let user):
            guard let name = try? BucketName(BucketMode.treeName) else { return .inboxPolicy(InboxPolicy()) }
            return .inboxPolicy(try reader.inboxPolicy(of: BucketID(app: app, user: user, name: name)))
        case .all(let question): return .all(try all(question))
        case .message(let message):
            return .message(message.read())
        case .body(let body): return .body(body.read())
        case .buckets(let app, let user):
            return .buckets(try reader.buckets(of: app, user: user).sorted { $0.id.name < $1.id.name })
        }
    }

    private func object(
        _ key: EntityKey, _ wanted: Version?, in bucket: BucketRow, upTo: GlobalID
    ) throws(StoreError) -> ReadAnswer {
        var version = wanted
        if version == nil { version = try newest(key, in: bucket, upTo: upTo) }
        guard let version else { return .object(0, nil) }
        return .object(version, try reader.body(of: key, version: version, in: bucket, upTo: upTo))
    }

    /// The rows may be newer than `upTo`; a client that follows the log from there ignores versions that it has.
    private func children(
        _ query: ChildrenQuery, _ cursor: ChildCursor, in bucket: BucketRow, tag: UInt32, upTo: GlobalID,
        _ member: BranchMember?
    ) throws(StoreError) -> ReadAnswer {
        let branch = member.map { BranchReads(reader: reader, bucket: bucket, member: $0) }
        if let branch, try !branch.isReader() { return .noBranch }
        let place = PageCache.Place.children(query, bucket, tag: tag, upTo: upTo)
        if branch == nil, let known = pages.page(place) { return .children(known.frame.bytes) }
        let read = ChildRead(
            query.parents, limit: query.limit, cursor: cursor, wantsStats: query.wantsStats,
            bytesMax: TreeLimits.childrenBytesMax)
        let lists: [StoredChildren]
        if let branch { lists = try branch.children(read) } else { lists = try reader.children(read, in: bucket) }
        let text = try ChildrenText.page(query, lists, current: codec.encode(upTo, tag: tag)) { node in
            switch query.order {
            case .newest: String(decoding: codec.encode(node.gid, tag: tag), as: UTF8.self)
            case .tag: node.tag.text
            }
        }
        if branch == nil { pages.keep(PageCache.Page(SharedFrame(encoded: text)), at: place) }
        return .children(text)
    }

    /// Version of the newest published state of an object; nil when it was removed or never existed.
    private func newest(
        _ key: EntityKey, in bucket: BucketRow, upTo: GlobalID
    ) throws(StoreError) -> Version? {
        guard let head = try reader.entity(key, in: bucket) else { return nil }
        if head.gid <= upTo { return head.isDeleted ? nil : head.version }
        // Some changes are on disk and not yet published: those of one or two turns.
        var gid = head.gid
        while gid > upTo {
            guard let row = try reader.change(gid) else { return nil }
            gid = row.previousOfEntity
        }
        guard gid > 0, let row = try reader.change(gid) else { return nil }
        return row.kind == .remove ? nil : row.endVersion
    }

    private func index(_ query: IndexQuery, tag: UInt32, channel: ChannelNumber) throws(StoreError) -> ReadAnswer {
        let place = PageCache.Place.index(query, channel)
        if let known = pages.page(place) { return .index(known.frame, isLast: known.isLast) }
        let known = pages.bodies(for: query)
        let found =
            if let known { try reader.indexPage(query, known: known) } else { try reader.indexPage(query) }
        guard let slice = found?.since(query.since) else { return .indexForgotten }
        let mark = slice.next.map {
            IndexMark(current: query.current, before: $0, replacedCurrent: query.replacedCurrent).text(codec, tag: tag)
        }
        // Not a position of this bucket at any time: a `cv` with it is answered by `cv:?`.
        let replacedCurrent = query.replacedCurrent.map { codec.encode($0, tag: ~tag) }
        var starts = [Int]()
        let frame = IndexMessage.page(
            channel, current: replacedCurrent ?? codec.encode(query.current, tag: tag), entries: slice.entries,
            mark: mark, total: slice.total, starts: &starts)
        let (entries, places) =
            query.oldestFirst ? (slice.entries.reversed(), starts.reversed()) : (slice.entries, starts)
        pages.keep(PageCache.Page(frame, isLast: mark == nil, entries: entries, starts: places), at: place)
        return .index(frame, isLast: mark == nil)
    }

    /// One message of a catch-up: as much of the log as its bounds admit.
    private func changes(
        _ bucket: BucketRow, tag: UInt32, after: GlobalID, upTo: GlobalID, member: BranchMember?, channel: ChannelNumber
    ) throws(StoreError) -> ReadAnswer {
        var elements = [[UInt8]]()
        var bytes = 0
        var through = after
        var removals = [EntityKey]()
        // Rows of other branches are read in vain: their number is bounded, too.
        var pagesLeft = member == nil ? Int.max : Self.branchPagesMax
        while through < upTo, pagesLeft > 0 {
            pagesLeft -= 1
            let room = min(Self.rowsAtOnce, limits.catchUpPageChanges - elements.count)
            let page = try reader.changes(
                in: bucket, after: through, upTo: upTo, limit: room, byteLimit: limits.catchUpPageBytes - bytes)
            guard let page else { return .changesForgotten }
            for change in page.changes {
                through = change.gid
                if let member, change.excludes(member) { return .changesForgotten }
                guard let seen = member.map({ change.seen(in: $0.root) }) ?? change else { continue }
                let element = encode(seen, tag: tag)
                elements.append(element)
                bytes += element.count + 1
                if seen.kind == .remove { removals.append(seen.key) }
                if bytes >= limits.catchUpPageBytes { break }
            }
            let isFull = bytes >= limits.catchUpPageBytes || elements.count >= limits.catchUpPageChanges
            if isFull && (page.hasMore || through < page.changes.last?.gid ?? 0) { break }
            if !page.hasMore { through = upTo }
        }
        return .changes(
            Reply.changes(channel, elements, bytes: bytes), count: elements.count, through: through,
            removals: removals.suffix(RemovalHints.countMax))
    }

    /// Log rows fetched by one call.
    private static let rowsAtOnce = 1_000
    /// Pages of the log that are read at once for the members of a branch.
    private static let branchPagesMax = 10

    private func encode(_ change: ChangeRecord, tag: UInt32) -> [UInt8] {
        ChangeElement.encode(change, codec, tag: tag)
    }
}
