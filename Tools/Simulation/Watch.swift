import ThicketProtocol
import ThicketSealed
import ThicketServer
import ThicketTreeShape

/// Checks one connection at the server's end: the promises to a client must hold for every message.
final class Watch {
    private struct Channel {
        let bucket: BucketName
        let clientID: String?
        var sent: SentChanges
        /// A library that must repeat its scan when the log was cut during it (decision 0003).
        let getsNoPosition: Bool
        /// Positions of the scans that were continued.
        var scans = Set<GlobalID>()

        init(_ bucket: BucketName, clientID: String?, library: String?, sent: SentChanges) {
            (self.bucket, self.clientID, self.sent) = (bucket, clientID, sent)
            getsNoPosition = ["ios", "osx"].contains(library)
        }
    }

    private unowned let world: World
    private let link: Int
    private let account: Account
    private var channels = [ChannelNumber: Channel]()

    init(_ world: World, _ link: Int, _ account: Account) {
        self.world = world
        self.link = link
        self.account = account
    }

    // MARK: - From the client

    func asked(_ text: [UInt8], _ codec: ChangeVersionCodec, _ server: SimulatedServer) {
        // Heartbeats are most of the messages, and carry no information.
        if text.first == 0x68 { return }
        guard let message = try? ClientMessage(parsing: text) else {
            return world.problem("link \(link): a client sent what cannot be read")
        }
        guard case .channel(let number, let request) = message else { return }
        if isHeads(request, number) { world.headsWrites += 1 } else { world.lastWork = world.now }
        if case .initialize(let hello) = request {
            guard let bucket = try? BucketName(hello.name ?? "") else { return }
            let before = channels[number].flatMap { $0.bucket == bucket ? $0 : nil }
            let sent = before.map { SentChanges(after: $0.sent) } ?? SentChanges()
            channels[number] = Channel(bucket, clientID: hello.clientID, library: hello.library, sent: sent)
            if let first = hello.firstRequest { asked(first, number, codec) }
        } else {
            asked(request, number, codec)
        }
    }

    private func asked(_ request: ChannelRequest, _ number: ChannelNumber, _ codec: ChangeVersionCodec) {
        guard let channel = channels[number] else { return }
        if case .change(let change) = request, world.names.isSealed(channel.bucket) { return asked(sealed: change) }
        switch request {
        case .changesSince(let position):
            if let gid = codec.decode(position, tag: tag(channel.bucket, codec)) {
                channels[number]?.sent.asked(since: gid)
            }
        case .index(let page):
            world.tally.scans += 1
            channels[number]?.sent.askedForIndex()
            // The scan's position, the key below which it continues, and the position of an earlier scan that was
            // started again.
            let marks = (page.mark ?? "").split(separator: ".").compactMap {
                codec.decode(String($0), tag: tag(channel.bucket, codec))
            }
            if marks.count > 1 { channels[number]?.scans.insert(marks.count == 3 ? marks[2] : marks[0]) }
        case .change(let change):
            // In other objects a whole text may be replaced meanwhile, and then one of the two wins.
            let isTyped = channel.bucket == world.names.notes && !change.key.utf8.elementsEqual("old".utf8)
            if isTyped { world.ledger.sent(change.ccid, insertsOnly: change.insertsOnly) }
        default: break
        }
    }

    /// Records that devices write for each other, at times that depend on no message: within the hour after the last
    /// edit.
    private func isHeads(_ request: ChannelRequest, _ number: ChannelNumber) -> Bool {
        guard case .change(let change) = request, let channel = channels[number],
            let keys = world.names.keys(channel.bucket, of: account)
        else { return false }
        return keys.serverKey(of: SealedHeads.appKey).utf8.elementsEqual(change.key.utf8)
    }

    /// Once sealed, the bytes of an operation never change under its ccid.
    private func asked(sealed change: ChangeRequest) {
        guard let operation = change.sealedOperation else { return }
        if let before = world.sealings[change.ccid], before != operation {
            return world.problem("link \(link): \(change.ccid) was sealed twice")
        }
        world.sealings[change.ccid] = operation
    }

    // MARK: - From the server

    /// - Parameter isBroadcast: whether a commit is the cause; pages of a catch-up may end within a batch.
    func observe(_ text: [UInt8], _ codec: ChangeVersionCodec, _ ledger: Ledger, isBroadcast: Bool) {
        if text.first == 0x68 { return }
        if let foreign = MarkerSource.foreignAccount(in: text, besides: account.number) {
            return world.problem("link \(link): account \(account.number) was sent what belongs to account \(foreign)")
        }
        let message: ServerMessage
        do {
            message = try ServerMessage(parsing: text)
        } catch {
            return world.problem("link \(link): the server sent what cannot be read: \(error)")
        }
        guard case .channel(let number, let reply) = message, let channel = channels[number] else { return }
        if world.names.isSealed(channel.bucket), MarkerSource.foreignAccount(in: text, besides: -1) != nil {
            return world.problem("link \(link): text written into a sealed bucket is sent in clear")
        }
        let mirror = ledger.mirror(world.names.id(channel.bucket, of: account))
        switch reply {
        case .changes(let events):
            for event in events { observe(event, number, mirror, codec) }
            if isBroadcast, mirror.isTree, Self.isDivided(events) {
                world.problem("link \(link): the changes of a batch are sent in two messages")
            }
        case .index(let page):
            observe(page, number, channel, codec)
            for entry in page.entries {
                check(entry.key, entry.version, entry.data, mirror, "the index")
            }
        case .entity(let reply):
            guard let key = try? EntityKey(reply.key), let data = reply.data else { return }
            check(key, reply.version, data, mirror, "e")
        case .changeVersionUnknown:
            channels[number]?.sent.positionUnknown()
        default: break
        }
    }

    private static func isDivided(_ events: [ChangeEvent]) -> Bool {
        let marks = events.compactMap { event -> BatchMark? in
            guard case .applied(let change) = event, let ccid = change.ccids.first else { return nil }
            return BatchMark(ccid: ccid)
        }
        guard let first = marks.first, let last = marks.last else { return false }
        return first.index > 0 || !last.isLast
    }

    private func observe(_ page: IndexPage, _ number: ChannelNumber, _ channel: Channel, _ codec: ChangeVersionCodec) {
        let tag = tag(channel.bucket, codec)
        if let gid = codec.decode(page.current.text, tag: tag) {
            channels[number]?.sent.index(at: gid)
        } else if channel.getsNoPosition, let gid = codec.decode(page.current.text, tag: ~tag),
            channel.scans.contains(gid)
        {
            channels[number]?.sent.scannedAgain()
        } else {
            world.problem("link \(link): an index has no known position")
        }
    }

    private func check(
        _ key: EntityKey, _ version: Version, _ data: JSONFragment?, _ mirror: Ledger.Mirror, _ place: String
    ) {
        guard let known = mirror.entities[key]?.history[version] else {
            return world.problem("link \(link): \(place) sends \(key.text).\(version), which never existed")
        }
        guard let data, !mirror.isSame(data.bytes, known) else { return }
        world.problem("link \(link): \(place) sends another \(key.text).\(version) than the log produces")
    }

    private func observe(
        _ event: ChangeEvent, _ number: ChannelNumber, _ mirror: Ledger.Mirror, _ codec: ChangeVersionCodec
    ) {
        switch event {
        case .applied(let change):
            guard let channel = channels[number] else { return }
            let gid = codec.decode(change.cv.text, tag: tag(channel.bucket, codec))
            guard let gid, let before = mirror.previous[gid] else {
                return world.problem("link \(link): a change of \(change.key.text) was sent that is not durable")
            }
            if change.ccids.contains(where: { mirror.changeIDs[$0] != gid }) {
                world.problem("link \(link): change \(gid) was sent under another ccid than its own")
            }
            if let row = mirror.rows[gid], row.source != change.sv || row.version != change.ev {
                world.problem("link \(link): change \(gid) was sent with other versions than its row has")
            }
            let isOwn = change.clientID == channel.clientID
            if let flaw = channels[number]?.sent.record(gid, after: before, isOwn: isOwn) {
                world.problem("link \(link), channel \(number): \(flaw)")
            }
        case .refused(let refusal):
            world.tally.refusals[refusal.error, default: 0] += 1
            guard refusal.error == ErrorCode.duplicateChange.rawValue else { return }
            if refusal.ccids.contains(where: { mirror.changeIDs[$0] == nil }) {
                world.problem("link \(link): 409 for a change of \(refusal.key) that was never applied")
            }
        }
    }

    private func tag(_ bucket: BucketName, _ codec: ChangeVersionCodec) -> UInt32 {
        codec.tag(of: world.names.id(bucket, of: account))
    }
}

extension ChangeRequest {
    /// Only insertions into the text `t`.
    fileprivate var insertsOnly: Bool {
        guard object == nil, sv != nil, let value = diff?.value,
            let edit = try? ObjectDiff(value),
            edit.operations.count == 1, case .text(let delta)? = edit["t"]
        else { return false }
        return delta.operations.allSatisfy { if case .delete = $0 { false } else { true } }
    }
}
