import ThicketProtocol
import ThicketTestSupport

/// One author in the crash test: it sends changes as fast as they are answered, records the acknowledged ones, and
/// after a crash behaves as a real client does: it requests the changes that it missed and sends the unanswered ones
/// again.
final class CrashWriter {
    /// Largest number of changes in flight.
    static let outstandingMax = 16

    let name: String
    let bucket: String
    private let token: String
    private let app: String
    private var random: SeededRandom
    private(set) var socket: WireSocket?
    private var isOpen = false
    /// Nothing new is sent or requested before the changes that were sent again are answered.
    private var sendsAgainFirst = false
    private var cv: String?
    private var count = 0

    /// Sent and unanswered changes, by ccid, with their messages as sent.
    private var outstanding = [(ccid: String, key: String, message: [UInt8])]()
    /// The journal: every acknowledged ccid.
    private(set) var acknowledged = Set<String>()
    /// Changes sent again after a crash and answered 409: they were stored before.
    private(set) var foundBefore = 0
    /// Answers that must not occur.
    private(set) var faults = [String]()
    /// Versions and texts of this writer's own objects, as acknowledged.
    private var own = [String: (version: Version, text: String)]()
    private var texts = [String: String]()
    private var sharedKey = "shared-0"

    /// Whether the bucket is sealed.
    private let isSealed: Bool
    /// Whether it creates the sealed object to which all authors of its bucket write.
    private let makesShared: Bool
    /// Newest known version of that object; nil: it does not exist yet.
    private var sharedVersion: Version?
    /// Operations sent to that object, and whether it was created.
    private var (sharedCount, isSharedMade) = (0, false)
    /// Operations that one author adds to that object: the server accepts 1,024 behind a snapshot.
    private static let sharedMax = 300

    init(
        name: String, app: String, bucket: String, token: String, seed: UInt64, isSealed: Bool = false,
        makesShared: Bool = false
    ) {
        (self.isSealed, self.makesShared) = (isSealed, makesShared)
        (self.name, self.app, self.bucket, self.token) = (name, app, bucket, token)
        random = SeededRandom(seed: seed)
    }

    /// All changes that were sent and not answered yet.
    var unanswered: Set<String> { Set(outstanding.map(\.ccid)) }

    /// Reconnects and sends the unanswered changes again.
    func connect(port: UInt16, round: Int) throws(ProcessError) {
        let shared = isSealed ? SealedText.key("shared-\(round)") : "shared-\(round)"
        if !shared.utf8.elementsEqual(sharedKey.utf8) { (sharedVersion, sharedCount, isSharedMade) = (nil, 0, false) }
        sharedKey = shared
        let made = try WireSocket(port: port, app: app)
        try made.open(bucket, app: app, token: token, clientID: name, mode: isSealed ? "sealed" : nil)
        socket = made
        isOpen = true
        // Clients differ: some first request the changes that they missed and find their own among them; others first
        // send again, receive the answer that their changes are known, and request then.
        sendsAgainFirst = !outstanding.isEmpty && random.next() % 2 == 0
        if !sendsAgainFirst { ask() }
        for change in outstanding { made.send(change.message) }
    }

    private func ask() { socket?.send(cv.map { "0:cv:\($0)" } ?? "0:i::::1") }

    /// Reads answers and, if `sends`, sends more.
    func turn(sends: Bool) {
        guard let socket, isOpen else { return }
        for bytes in socket.take() {
            guard case .channel(0, let reply)? = try? ServerMessage(parsing: bytes) else {
                faults.append("\(name): not a message: \(String(decoding: bytes.prefix(200), as: UTF8.self))")
                continue
            }
            switch reply {
            case .changes(let events): for event in events { receive(event) }
            case .index(let page): cv = page.current.text
            // Retention has cut the log meanwhile: as every client does, start again from the index.
            case .changeVersionUnknown: socket.send("0:i::::1")
            // The kind of the bucket.
            case .options: break
            case .unknown: faults.append("\(name): an answer nobody asked for")
            default: faults.append("\(name): unexpected \(String(decoding: bytes.prefix(200), as: UTF8.self))")
            }
        }
        if socket.isClosed { isOpen = false }
        if sendsAgainFirst, outstanding.isEmpty {
            sendsAgainFirst = false
            ask()
        }
        while sends, isOpen, !sendsAgainFirst, cv != nil, outstanding.count < CrashWriter.outstandingMax, sendOne() {}
    }

    /// Drops the connection of a killed server.
    func drop() {
        socket = nil
        isOpen = false
    }

    private func receive(_ event: ChangeEvent) {
        switch event {
        case .applied(let change):
            cv = change.cv.text
            if change.key.text.utf8.elementsEqual(sharedKey.utf8) { sharedVersion = change.ev }
            for ccid in change.ccids { confirm(ccid, change.ev, isRemoval: change.operation == .remove) }
        case .refused(let refusal):
            for ccid in refusal.ccids { refused(ccid, refusal.error) }
        }
    }

    private func confirm(_ ccid: String, _ ev: Version, isRemoval: Bool) {
        guard let index = outstanding.firstIndex(where: { $0.ccid == ccid }) else { return }
        let key = outstanding.remove(at: index).key
        acknowledged.insert(ccid)
        if isRemoval {
            own[key] = nil
            texts[ccid] = nil
        } else if let text = texts.removeValue(forKey: ccid) {
            own[key] = (ev, text)
        }
    }

    private func refused(_ ccid: String, _ code: Int) {
        guard let index = outstanding.firstIndex(where: { $0.ccid == ccid }) else { return }
        switch code {
        case ErrorCode.duplicateChange.rawValue:
            // It was applied before the crash. Its version is not certain, so the object is not used any more.
            foundBefore += 1
            acknowledged.insert(ccid)
            let key = outstanding.remove(at: index).key
            texts[ccid] = nil
            own[key] = nil
        case ErrorCode.unavailable.rawValue:
            break  // stays unanswered and is sent again at the next connection
        default:
            faults.append("\(name): \(ccid) was refused with \(code)")
            outstanding.remove(at: index)
        }
    }

    /// Sends one change; false if no object can be changed now.
    private func sendOne() -> Bool {
        count += 1
        guard !isSealed else { return sendSealed(SealedText.changeID("\(name)-\(count)")) }
        let ccid = "\(name)-\(count)"
        if random.next() % 4 == 0 {
            // All writers add to the same object; each addition is a separate member, so all must survive.
            return send(ccid, sharedKey, ["o": "M", "v": .object([ccid: ["o": "+", "v": 1]])])
        }
        let free: [String] = own.keys.filter { (key: String) in !outstanding.contains { $0.key == key } }.sorted()
        guard let key = free.randomElement(using: &random), free.count > 8 || random.next() % 2 == 0,
            let state = own[key]
        else { return create(ccid) }
        if random.next() % 12 == 0 { return send(ccid, key, ["o": "-"]) }
        let word = "w\(random.next() % 1_000) "
        texts[ccid] = state.text + word
        let delta = "=\(state.text.utf16.count)\t+\(word)"
        return send(
            ccid, key,
            ["o": "M", "sv": .number(JSONNumber(state.version)), "v": ["text": ["o": "d", "v": .string(delta)]]])
    }

    /// As `sendOne`, for sealed objects.
    private func sendSealed(_ ccid: String) -> Bool {
        if random.next() % 4 == 0, sharedCount < Self.sharedMax {
            if let version = sharedVersion {
                sharedCount += 1
                return send(ccid, sharedKey, SealedStand.operation(ccid), on: version)
            }
            if makesShared, !isSharedMade {
                isSharedMade = true
                return send(ccid, sharedKey, SealedStand.creation(ccid))
            }
        }
        let free: [String] = own.keys.filter { (key: String) in !outstanding.contains { $0.key == key } }.sorted()
        guard let key = free.randomElement(using: &random), free.count > 8 || random.next() % 2 == 0,
            let state = own[key], var stand = SealedStand(state.text)
        else {
            texts[ccid] = SealedStand().text
            return send(ccid, SealedText.key("\(name)-key-\(count)"), SealedStand.creation(ccid))
        }
        if random.next() % 12 == 0 { return send(ccid, key, ["o": "-"], on: state.version) }
        var members = SealedStand.operation(ccid)
        if stand.tail >= SealedStand.tailMax { (members, stand) = stand.compaction(ccid) } else { stand.tail += 1 }
        texts[ccid] = stand.text
        return send(ccid, key, members, on: state.version)
    }

    private func send(_ ccid: String, _ key: String, _ members: JSONObject, on version: Version) -> Bool {
        var members = members
        members["sv"] = .number(JSONNumber(version))
        return send(ccid, key, members)
    }

    private func create(_ ccid: String) -> Bool {
        texts[ccid] = "begin "
        return send(
            ccid, "\(name)-key-\(count)",
            ["o": "M", "v": ["text": ["o": "+", "v": "begin "], "by": ["o": "+", "v": .string(name)]]])
    }

    private func send(_ ccid: String, _ key: String, _ members: JSONObject) -> Bool {
        var change: JSONObject = ["clientid": .string(name), "id": .string(key), "ccid": .string(ccid)]
        for (name, value) in members.pairs { change[name] = value }
        let message = Array("0:c:".utf8) + change.serialized()
        outstanding.append((ccid, key, message))
        socket?.send(message)
        return true
    }
}
