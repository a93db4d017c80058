import ThicketProtocol

/// One bucket of a `LegacyClient`.
final class LegacyChannel {
    /// What the client knows of one object.
    private struct Object {
        var ghost: JSONObject?
        var version: Version = 0
        var local: JSONObject?
        var pending: ChangeRequest?
        /// Not sent until the ghost changes or the object is edited.
        var isStalled = false
        /// The next change carries the whole object.
        var sendsWhole = false
        /// The version that was requested with `e`.
        var wanted: Version?

        var isDirty: Bool { local != ghost }
    }

    private enum Phase { case closed, opening, scanning, catchingUp, live }

    private unowned let client: LegacyClient
    private var world: World { client.world }
    private let number: ChannelNumber
    let bucket: BucketName
    private var phase = Phase.closed
    private var objects = [EntityKey: Object]()
    private var position: String?
    private var scan: (current: String?, seen: Set<EntityKey>) = (nil, [])
    private var changes = 0
    private var emptying: ChangeRequest?
    private var generation = 0

    init(_ client: LegacyClient, _ number: Int, _ bucket: BucketName) {
        self.client = client
        self.number = ChannelNumber(number)
        self.bucket = bucket
    }

    var isSynced: Bool {
        phase == .live && emptying == nil
            && objects.values.allSatisfy { $0.pending == nil && $0.wanted == nil && (!$0.isDirty || $0.isStalled) }
    }

    func local(_ key: EntityKey) -> JSONObject? { objects[key]?.local }

    // MARK: - Requests

    private func send(_ request: ChannelRequest) { client.send(.channel(number, request)) }

    private var name: String { "legacy-\(client.number)" }

    func open() {
        generation += 1
        phase = .opening
        var hello = InitRequest()
        hello.clientID = name
        hello.api = "1.1"
        hello.token = client.account.token
        hello.appID = client.account.app.text
        hello.name = bucket.text
        hello.library = client.habit == .asksAfterIndex ? "ios" : "other"
        hello.version = "1"
        send(.initialize(hello))
    }

    func closed() {
        generation += 1
        phase = .closed
        for key in objects.keys { objects[key]?.wanted = nil }
    }

    private func beginScan() {
        phase = .scanning
        scan = (nil, [])
        send(.index(IndexRequest(wantsData: true, limit: 2 + client.number % 3)))
    }

    private func ask(_ key: EntityKey, _ version: Version) {
        guard objects[key]?.wanted ?? 0 < version else { return }
        objects[key, default: Object()].wanted = version
        send(.entity(key: key.text, version: version))
    }

    // MARK: - Answers

    func received(_ reply: ServerReply) {
        switch reply {
        case .authorized:
            if let position {
                phase = .catchingUp
                send(.changesSince(position))
            } else {
                beginScan()
            }
        case .authFailed(let code, let message):
            if code < 500 { world.problem("legacy \(client.number): \(message)") }
            let generation = generation
            world.after(5_000_000) { [self] in if self.generation == generation { client.startAgain() } }
        case .index(let page): received(page)
        case .changes(let events):
            for event in events { received(event) }
            guard phase == .catchingUp else { return }
            phase = .live
            sendAgain()
        case .changeVersionUnknown: if phase != .scanning { beginScan() }
        case .entity(let reply): received(reply)
        case .authExpired, .indexRequest, .notUnderstood, .options, .removed, .unknown: break
        }
    }

    private func received(_ page: IndexPage) {
        guard phase == .scanning else { return }
        // iOS treats all pages up to the last as one scan, and stores the position of the last page. A client that
        // continues from the index must compare the position of each page, and start its list again if it differs.
        let isOther = scan.current != nil && scan.current != page.current.text
        if isOther, client.habit == .continues { scan.seen = [] }
        scan.current = page.current.text
        for entry in page.entries {
            scan.seen.insert(entry.key)
            guard let object = entry.data?.object else { continue }
            if entry.version > objects[entry.key]?.version ?? 0 { adopt(entry.key, entry.version, object) }
        }
        if let mark = page.mark {
            return send(.index(IndexRequest(wantsData: true, mark: mark, limit: 2 + client.number % 3)))
        }
        for key in objects.keys.sorted() where !scan.seen.contains(key) {
            if objects[key]?.ghost != nil { adopt(key, objects[key]?.version ?? 0, nil) }
        }
        position = scan.current
        if client.habit == .asksAfterIndex {
            phase = .catchingUp
            send(.changesSince(position ?? ""))
        } else {
            phase = .live
            sendAgain()
        }
    }

    private func received(_ reply: EntityReply) {
        guard let key = try? EntityKey(reply.key), let wanted = objects[key]?.wanted,
            reply.version >= wanted
        else { return }
        objects[key]?.wanted = nil
        guard let object = reply.data?.object else {
            // Removed since, or not kept.
            if phase == .live { beginScan() }
            return
        }
        if reply.version > objects[key]?.version ?? 0 { adopt(key, reply.version, object) }
        pump(key)
    }

    /// The ghost changes; local edits are rebased over the difference.
    private func adopt(_ key: EntityKey, _ version: Version, _ ghost: JSONObject?) {
        var object = objects[key] ?? Object()
        if object.isDirty, let local = object.local, let new = ghost {
            let base = object.ghost ?? JSONObject()
            let theirs = JSONDiff.diff(from: base, to: new)
            object.local = Self.carried(local, base: base, over: theirs, to: new)
        } else if !object.isDirty || object.local == nil {
            object.local = ghost
        }
        object.ghost = ghost
        object.version = version
        object.isStalled = false
        objects[key] = object
    }

    private static func carried(
        _ local: JSONObject, base: JSONObject, over theirs: ObjectDiff, to new: JSONObject
    ) -> JSONObject {
        let mine = JSONDiff.diff(from: base, to: local)
        let carried = try? JSONDiff.transform(mine, over: theirs, base: base, rule: .reference)
        return carried.flatMap { try? JSONDiff.apply($0, to: new) } ?? new
    }

    private func received(_ event: ChangeEvent) {
        switch event {
        case .applied(let change):
            let isApplied = apply(change)
            // During a scan the position to store is that of its pages.
            if isApplied, phase != .scanning { position = change.cv.text }
            if phase == .live { pump(change.key) }
        case .refused(let refusal):
            if let sent = emptying, refusal.ccids.contains(sent.ccid) { return answeredEmpty(refusal) }
            guard let key = try? EntityKey(refusal.key), let sent = objects[key]?.pending,
                refusal.ccids.contains(sent.ccid)
            else { return }
            refused(key, refusal.error)
        }
    }

    /// Applies a change, or requests the object if the change does not fit.
    ///
    /// The older libraries store the position of a change only once they have applied it. They forget a request with
    /// its connection, and ask again when the server sends the change again. Even so, a change of another object that
    /// they apply meanwhile moves the position past it.
    /// - Returns: false when the object was requested.
    private func apply(_ change: AppliedChange) -> Bool {
        if let sent = emptying, change.ccids.contains(sent.ccid) { emptying = nil }
        var object = objects[change.key] ?? Object()
        let isMine = object.pending.map { change.ccids.contains($0.ccid) } ?? false
        if isMine { object.pending = nil }
        objects[change.key] = object
        guard change.ev > object.version else { return true }
        if change.operation == .remove {
            if !object.isDirty || isMine { object.local = nil }
            object.ghost = nil
            object.version = change.ev
            object.isStalled = false
            objects[change.key] = object
            return true
        }
        let isNew = (change.sv ?? 0) == 0
        let base = isNew ? JSONObject() : object.version == change.sv ? object.ghost : nil
        guard let base, let value = change.diff?.value,
            let diff = try? ObjectDiff(value),
            let next = try? JSONDiff.apply(diff, to: base)
        else {
            ask(change.key, change.ev)
            return false
        }
        if !isMine {
            if object.isDirty, let local = object.local {
                object.local = Self.carried(local, base: base, over: diff, to: next)
            } else if !object.isDirty {
                object.local = next
            }
        }
        object.ghost = next
        object.version = change.ev
        object.isStalled = false
        objects[change.key] = object
        return true
    }

    private func refused(_ key: EntityKey, _ code: Int) {
        guard var object = objects[key] else { return }
        let sent = object.pending
        object.pending = nil
        switch ErrorCode(rawValue: code) {
        case .serverError, .unavailable:
            object.pending = sent
            objects[key] = object
            let generation = generation
            world.after(world.random.between(500_000, 3_000_000)) { [self] in
                guard self.generation == generation, phase == .live, let again = objects[key]?.pending,
                    again.ccid == sent?.ccid
                else { return }
                send(.change(again))
            }
            return
        case .duplicateChange, .emptyChange:
            object.isStalled = true
        case .notFound:
            // Removed at the server: the local state creates it again. It may exist again, in a version that was
            // received already.
            (object.ghost, object.version) = (nil, 0)
            if sent?.operation == .remove { object.local = nil }
        case .badVersion, .invalidDiff:
            object.sendsWhole = true
            if phase == .live, code == ErrorCode.badVersion.rawValue {
                objects[key] = object
                return beginScan()
            }
        default:
            object.local = object.ghost
        }
        objects[key] = object
        // Another client has created an equal object: the index has its version.
        let isThere = code == ErrorCode.emptyChange.rawValue && object.ghost == nil
        if isThere || code == ErrorCode.duplicateChange.rawValue, phase == .live { return beginScan() }
        if phase == .live { pump(key) }
    }

    // MARK: - Sending

    /// The change in flight is sent again unchanged, then what has changed since.
    private func sendAgain() {
        if let emptying { send(.change(emptying)) }
        for key in objects.keys.sorted() {
            if let pending = objects[key]?.pending { send(.change(pending)) } else { pump(key) }
        }
    }

    func edit(_ key: EntityKey, to next: JSONObject?) {
        objects[key, default: Object()].local = next
        objects[key]?.isStalled = false
        world.tally.edits += 1
        if phase == .live { pump(key) }
    }

    private func pump(_ key: EntityKey) {
        guard var object = objects[key], object.pending == nil, object.wanted == nil, object.isDirty,
            !object.isStalled
        else { return }
        changes += 1
        var change = ChangeRequest(
            key: key.text, ccid: "\(name)-\(bucket.text)-\(changes)",
            operation: object.local == nil ? .remove : .modify)
        if let local = object.local {
            let diff = JSONDiff.diff(from: object.ghost ?? JSONObject(), to: local)
            change.diff = .value(diff.json)
            if object.ghost != nil { change.sv = object.version }
            if object.sendsWhole { change.object = .value(.object(local)) }
        }
        object.sendsWhole = false
        object.pending = change
        objects[key] = object
        send(.change(change))
    }

    /// Removes everything in the bucket.
    func empty() {
        guard phase == .live, emptying == nil else { return }
        changes += 1
        let change = ChangeRequest(
            key: bucket.text, ccid: "\(name)-\(bucket.text)-\(changes)", operation: .empty)
        emptying = change
        send(.change(change))
    }

    private func answeredEmpty(_ refusal: RefusedChange) {
        let sent = emptying
        guard refusal.error >= 500 else {
            emptying = nil
            return
        }
        let generation = generation
        world.after(world.random.between(500_000, 3_000_000)) { [self] in
            guard self.generation == generation, phase == .live, let sent, emptying?.ccid == sent.ccid else { return }
            send(.change(sent))
        }
    }

    // MARK: - At rest

    func compare(_ objects: [EntityKey: (version: Version, body: [UInt8])]) {
        let mine: [EntityKey] = self.objects.filter { $0.value.ghost != nil }.keys.sorted()
        guard mine == objects.keys.sorted() else {
            return world.problem(
                "legacy \(client.number) has \(mine.map(\.text)), the server \(objects.keys.sorted().map(\.text))")
        }
        for key in mine {
            guard let object = self.objects[key], let (version, body) = objects[key] else {
                continue
            }
            guard object.version == version, object.ghost.map({ JSONValue.object($0).serialized() }) == body else {
                world.problem(
                    "legacy \(client.number): ghost of \(key.text).\(object.version) differs from .\(version)")
                continue
            }
        }
    }
}
