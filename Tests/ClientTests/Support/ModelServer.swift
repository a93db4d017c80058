import ThicketClient
import ThicketProtocol
import ThicketSealed

/// The smallest server that keeps the rules of the wire contract, in memory, for one user: orders changes, rebases late
/// ones by exact positions, remembers ccids, serves an index. Pure: text in, texts out.
struct ModelServer {
    struct Step {
        let version: Version
        let before: JSONObject?
        /// nil: removed.
        let diff: ObjectDiff?
    }

    struct Entity {
        var version: Version = 0
        var object: JSONObject?
        /// Oldest first; earlier steps may be forgotten.
        var steps = [Step]()
    }

    struct Bucket {
        var entities = [String: Entity]()
        var log = [AppliedChange]()
        /// Changes up to this position are forgotten.
        var floor = 0
        /// Distinguishes positions of one generation of the bucket from another's.
        var epoch = 1
        var changeIDs = Set<String>()
    }

    struct Channel: Hashable {
        let connection: Int
        let number: ChannelNumber
    }

    struct Subscription {
        let bucket: String
        let clientID: String
        var isListening = false
    }

    var buckets = [String: Bucket]()
    var subscriptions = [Channel: Subscription]()
    var token = "token"
    /// Answers every change with this code and applies nothing, while set.
    var refusal: Int?
    /// Objects on one page of an index.
    var pageObjects = 3
    /// Changes in one message of the answer to `cv`.
    var partChanges = Int.max
    /// Buckets that are not opened, with 500.
    var closedBuckets = Set<String>()
    /// Buckets of the mode `sealed`: changes have its shape, insertions are accepted on any version.
    var sealedBuckets = Set<String>()
    /// Compactions are answered with 412.
    var refusesCompactions = false
    /// Number of compactions received.
    private(set) var compactions = 0
    /// How many changes were applied, and how often each code was answered.
    private(set) var applied = 0
    private(set) var refusals = [Int: Int]()

    // MARK: - Input

    mutating func disconnect(_ connection: Int) {
        subscriptions = subscriptions.filter { $0.key.connection != connection }
    }

    /// Returns the texts to send, each with its connection.
    mutating func receive(_ text: [UInt8], from connection: Int) -> [(connection: Int, text: [UInt8])] {
        guard let message = try? ClientMessage(parsing: text) else { return [] }
        switch message {
        case .heartbeat(let count): return [(connection, ServerMessage.heartbeat(count + 1).encoded())]
        case .log: return []
        case .channel(let number, let request):
            return receive(request, on: Channel(connection: connection, number: number))
        }
    }

    private mutating func receive(_ request: ChannelRequest, on channel: Channel) -> [(connection: Int, text: [UInt8])]
    {
        if case .initialize(let hello) = request {
            guard hello.token == token, let name = hello.name else {
                return [reply(.authFailed(code: 401, message: "Token invalid"), channel)]
            }
            guard !closedBuckets.contains(name) else {
                return [reply(.authFailed(code: 500, message: "closed for a test"), channel)]
            }
            if hello.mode?.utf8.elementsEqual("sealed".utf8) == true, buckets[name] == nil {
                sealedBuckets.insert(name)
            }
            subscriptions[channel] = Subscription(bucket: name, clientID: hello.clientID ?? "")
            let first = hello.firstRequest.map { receive($0, on: channel) } ?? []
            return [reply(.authorized(user: "user@example.com"), channel)] + first
        }
        guard let subscription = subscriptions[channel] else { return [] }
        switch request {
        case .index(let index):
            subscriptions[channel]?.isListening = true
            return [reply(.index(page(index, of: subscription.bucket)), channel)]
        case .changesSince(let position):
            subscriptions[channel]?.isListening = true
            return since(position, of: subscription.bucket).map { reply($0, channel) }
        case .entity(let key, let version):
            let object = object(key, version, in: subscription.bucket)
            return [
                reply(
                    .entity(EntityReply(key: key, version: version, data: object.map { .value(.object($0)) })), channel)
            ]
        case .change(let change): return receive(change, subscription, channel)
        default: return []
        }
    }

    private func reply(_ reply: ServerReply, _ channel: Channel) -> (connection: Int, text: [UInt8]) {
        (channel.connection, ServerMessage.channel(channel.number, reply).encoded())
    }

    // MARK: - Reading

    func position(_ index: Int, of bucket: Bucket) -> ChangeVersion {
        guard let position = try? ChangeVersion("\(bucket.epoch)-\(index)") else {
            preconditionFailure()
        }
        return position
    }

    private func index(of position: String, in bucket: Bucket) -> Int? {
        let parts: [Substring] = position.split(separator: "-")
        guard parts.count == 2, Int(parts[0]) == bucket.epoch, let index = Int(parts[1]) else { return nil }
        return index >= bucket.floor && index <= bucket.log.count ? index : nil
    }

    private func since(_ position: String, of name: String) -> [ServerReply] {
        let bucket = buckets[name] ?? Bucket()
        guard let index = index(of: position, in: bucket) else { return [.changeVersionUnknown] }
        let missed = bucket.log[index...].map(ChangeEvent.applied)
        guard missed.count > partChanges else { return [.changes(missed)] }
        return stride(from: 0, to: missed.count, by: partChanges).map { start in
            .changes(Array(missed[start..<min(missed.count, start + partChanges)]))
        }
    }

    /// Pages are snapshots at the position of the first one, by replaying the log.
    private func page(_ request: IndexRequest, of name: String) -> IndexPage {
        let bucket = buckets[name] ?? Bucket()
        let mark = (request.mark ?? "").split(separator: ".").compactMap { Int($0) }
        let at = mark.count == 2 ? mark[0] : bucket.log.count
        let start = mark.count == 2 ? mark[1] : 0
        var entries = [(key: String, version: Version, object: JSONObject)]()
        for (key, entity) in bucket.entities.sorted(by: { $0.key < $1.key }) {
            var version = entity.version
            var object = entity.object
            let later = Set(
                bucket.log[min(at, bucket.log.count)...].filter { $0.key.text == key }.map(\.ev))
            for step in entity.steps.reversed() where later.contains(step.version) {
                (version, object) = (step.version - 1, step.before)
            }
            if let object { entries.append((key, version, object)) }
        }
        let end = min(entries.count, start + pageObjects)
        let shown: [IndexPage.Entry] = entries[min(start, end)..<end].compactMap { entry in
            guard let key = try? EntityKey(entry.key) else { return nil }
            return IndexPage.Entry(key: key, version: entry.version, data: .value(.object(entry.object)))
        }
        return IndexPage(
            current: position(at, of: bucket), entries: shown, mark: end < entries.count ? "\(at).\(end)" : nil)
    }

    private func object(_ key: String, _ version: Version, in name: String) -> JSONObject? {
        guard let entity = buckets[name]?.entities[key] else { return nil }
        if entity.version == version { return entity.object }
        return entity.steps.first { $0.version == version + 1 }?.before
    }

    // MARK: - Changes

    private mutating func receive(
        _ change: ChangeRequest, _ subscription: Subscription, _ channel: Channel
    ) -> [(connection: Int, text: [UInt8])] {
        let code: Int?
        if let refusal { code = refusal } else { code = decide(change, subscription) }
        if let code {
            refusals[code, default: 0] += 1
            let refused = RefusedChange(
                clientID: subscription.clientID, key: change.key, error: code, ccids: [change.ccid])
            return [reply(.changes([.refused(refused)]), channel)]
        }
        guard let last = buckets[subscription.bucket]?.log.last else { return [] }
        return subscriptions.filter { $0.value.bucket == subscription.bucket && $0.value.isListening }.keys
            .sorted { ($0.connection, $0.number) < ($1.connection, $1.number) }
            .map { reply(.changes([.applied(last)]), $0) }
    }

    /// Applies the change, or returns the code of its refusal.
    private mutating func decide(_ change: ChangeRequest, _ author: Subscription) -> Int? {
        var bucket = buckets[author.bucket] ?? Bucket()
        if bucket.changeIDs.contains(change.ccid) { return 409 }
        guard let key = try? EntityKey(change.key) else { return 400 }
        var entity = bucket.entities[change.key] ?? Entity()
        let base = entity.object
        var diff: ObjectDiff?
        if change.operation == .remove {
            guard entity.version > 0 else { return 404 }
            guard base != nil else { return 412 }
            if let sv = change.sv, sv != entity.version { return 405 }
        } else {
            let isSealed = sealedBuckets.contains(author.bucket)
            switch isSealed ? sealed(change, entity) : rebased(change, entity) {
            case .failure(let refusal): return refusal.code
            case .success(let rebased): diff = rebased
            }
        }
        entity.steps.append(Step(version: entity.version + 1, before: base, diff: diff))
        do { entity.object = try diff.map { try JSONDiff.apply($0, to: base ?? JSONObject()) } } catch { return 440 }
        if let object = entity.object, let base, object == base { return 412 }
        entity.version += 1
        bucket.entities[change.key] = entity
        bucket.changeIDs.insert(change.ccid)
        let sv: Version? = diff != nil && base != nil ? entity.version - 1 : nil
        bucket.log.append(
            AppliedChange(
                clientID: author.clientID, cv: position(bucket.log.count + 1, of: bucket), key: key,
                operation: diff == nil ? .remove : .modify, diff: diff.map { .value($0.json) }, sv: sv,
                ev: entity.version, ccids: [change.ccid]))
        buckets[author.bucket] = bucket
        applied += 1
        return nil
    }

    struct Refusal: Error { let code: Int }

    private func rebased(_ change: ChangeRequest, _ entity: Entity) -> Result<ObjectDiff, Refusal> {
        if entity.object == nil, change.sv ?? 0 > 0, change.object == nil { return .failure(Refusal(code: 404)) }
        do {
            var diff: ObjectDiff
            if let whole = change.object?.object {
                let step = entity.steps.first { $0.version == (change.sv ?? 0) + 1 }
                guard let step, change.sv ?? 0 > 0 else {
                    return .success(JSONDiff.diff(from: entity.object ?? JSONObject(), to: whole))
                }
                diff = JSONDiff.diff(from: step.before ?? JSONObject(), to: whole)
            } else {
                guard let raw = change.diff?.value else { return .failure(Refusal(code: 400)) }
                diff = try ObjectDiff(raw)
            }
            guard let object = entity.object else { return .success(diff) }
            guard let sv = change.sv, sv > 0 else {
                let all = JSONDiff.diff(from: JSONObject(), to: object)
                return .success(
                    try JSONDiff.transform(diff, over: all, base: JSONObject(), rule: .exact(tie: .after)))
            }
            guard sv <= entity.version else { return .failure(Refusal(code: 405)) }
            let later = entity.steps.filter { $0.version > sv }
            guard later.count == Int(entity.version - sv) else { return .failure(Refusal(code: 405)) }
            for step in later {
                guard let before = step.before, let over = step.diff else {
                    return .failure(Refusal(code: 405))
                }
                diff = try JSONDiff.transform(diff, over: over, base: before, rule: .exact(tie: .after))
            }
            return .success(diff)
        } catch {
            return .failure(Refusal(code: 440))
        }
    }

    // MARK: - Sealed buckets

    private mutating func sealed(_ change: ChangeRequest, _ entity: Entity) -> Result<ObjectDiff, Refusal> {
        do {
            switch try SealedShape.check(change) {
            case .creation(let snapshot):
                guard entity.object == nil else { return .failure(Refusal(code: 405)) }
                return .success(SealedEntity.creation(snapshot))
            case .insertion(let operation):
                guard entity.object != nil else { return .failure(Refusal(code: 404)) }
                return .success(SealedEntity.insertion(operation))
            case .compaction(let compaction):
                compactions += 1
                guard !refusesCompactions else { return .failure(Refusal(code: 412)) }
                guard let object = entity.object else { return .failure(Refusal(code: 404)) }
                return .success(try rebased(compaction, on: SealedEntity(object)))
            case .removal: return .failure(Refusal(code: 400))
            }
        } catch {
            return .failure(Refusal(code: 400))
        }
    }

    /// The rest of a compaction after others that may have come before it.
    private func rebased(_ compaction: SealedShape.Compaction, on entity: SealedEntity) throws -> ObjectDiff {
        var named = [(key: String, operation: ThicketProtocol.Operation)]()
        if entity.snapshots[compaction.position] == nil {
            named.append((key: String(compaction.position), operation: .insert(.string(compaction.snapshot))))
        }
        for old in compaction.removedSnapshots where entity.snapshots[old] != nil {
            named.append((key: String(old), operation: .remove))
        }
        let covered = max(0, compaction.position - (entity.newest?.position ?? 0))
        let tail = (entity.tail.count - min(covered, entity.tail.count))..<entity.tail.count
        return ObjectDiff([
            (key: "s", operation: .object(ObjectDiff(named))),
            (key: "d", operation: .list(ListDiff(tail.map { (index: $0, operation: .remove) }))),
        ])
    }

    // MARK: - Events at a server

    /// Forgets the log up to now: positions are unknown, old source versions too.
    mutating func forgetLog(_ name: String) {
        guard var bucket = buckets[name] else { return }
        bucket.floor = bucket.log.count
        for key in bucket.entities.keys { bucket.entities[key]?.steps = [] }
        buckets[name] = bucket
    }
}
