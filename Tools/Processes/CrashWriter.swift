import ThicketProtocol
import ThicketTestSupport

/// One author in the crash test: sends changes as fast as they are answered, remembers what was acknowledged, and after
/// a crash behaves as a real client does: asks for what it missed and sends again what was not answered.
final class CrashWriter {
    /// Changes on their way at once.
    static let outstandingMax: Int = 16

    let name: String
    let bucket: String
    private let token: String
    private let app: String
    private var random: SeededRandom
    private(set) var socket: WireSocket?
    private var isOpen: Bool = false
    /// Nothing new is sent, and nothing asked, before what was sent again has been answered.
    private var sendsAgainFirst: Bool = false
    private var cv: String?
    private var count: Int = 0

    /// Sent and not answered, by ccid: the message, as it went.
    private var outstanding: [(ccid: String, key: String, message: [UInt8])] = []
    /// What the journal has: every ccid that was acknowledged.
    private(set) var acknowledged: Set<String> = []
    /// Sent again after a crash and answered 409: the change was in before.
    private(set) var foundBefore: Int = 0
    /// Answers that must not come.
    private(set) var faults: [String] = []
    /// Versions and texts of this writer's own objects, as acknowledged.
    private var own: [String: (version: Version, text: String)] = [:]
    private var texts: [String: String] = [:]
    private var sharedKey: String = "shared-0"

    /// The bucket is sealed.
    private let isSealed: Bool
    /// It makes the sealed object that all of its bucket write to.
    private let makesShared: Bool
    /// Newest version that is known of that; nil: it is not there yet.
    private var sharedVersion: Version?
    /// Operations sent to it, and whether it was made.
    private var (sharedCount, isSharedMade): (Int, Bool) = (0, false)
    /// Operations that one author adds to it: the server takes 1,024 behind a snapshot.
    private static let sharedMax: Int = 300

    init(
        name: String, app: String, bucket: String, token: String, seed: UInt64, isSealed: Bool = false,
        makesShared: Bool = false
    ) {
        (self.isSealed, self.makesShared) = (isSealed, makesShared)
        (self.name, self.app, self.bucket, self.token) = (name, app, bucket, token)
        random = SeededRandom(seed: seed)
    }

    /// Everything ever sent that has had no answer yet.
    var unanswered: Set<String> { Set(outstanding.map(\.ccid)) }

    /// Connects anew and sends again what was not answered.
    func connect(port: UInt16, round: Int) throws(ProcessError) {
        let shared: String = isSealed ? SealedText.key("shared-\(round)") : "shared-\(round)"
        if !shared.utf8.elementsEqual(sharedKey.utf8) { (sharedVersion, sharedCount, isSharedMade) = (nil, 0, false) }
        sharedKey = shared
        let made: WireSocket = try WireSocket(port: port, app: app)
        try made.open(bucket, app: app, token: token, clientID: name, mode: isSealed ? "sealed" : nil)
        socket = made
        isOpen = true
        // Clients differ: some ask first what they missed and find their changes there; some send again first, are told
        // that they are known, and ask then.
        sendsAgainFirst = !outstanding.isEmpty && random.next() % 2 == 0
        if !sendsAgainFirst { ask() }
        for change in outstanding { made.send(change.message) }
    }

    private func ask() { socket?.send(cv.map { "0:cv:\($0)" } ?? "0:i::::1") }

    /// Reads answers and, if it is to, sends more.
    func turn(sends: Bool) {
        guard let socket: WireSocket, isOpen else { return }
        for bytes: [UInt8] in socket.take() {
            guard case .channel(0, let reply)? = try? ServerMessage(parsing: bytes) else {
                faults.append("\(name): not a message: \(String(decoding: bytes.prefix(200), as: UTF8.self))")
                continue
            }
            switch reply {
            case .changes(let events): for event: ChangeEvent in events { receive(event) }
            case .index(let page): cv = page.current.text
            // Retention has cut the log meanwhile: as every client, begin anew from the index.
            case .changeVersionUnknown: socket.send("0:i::::1")
            // What the bucket is.
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

    /// The connection is of no more use: the server was killed.
    func drop() {
        socket = nil
        isOpen = false
    }

    private func receive(_ event: ChangeEvent) {
        switch event {
        case .applied(let change):
            cv = change.cv.text
            if change.key.text.utf8.elementsEqual(sharedKey.utf8) { sharedVersion = change.ev }
            for ccid: String in change.ccids { confirm(ccid, change.ev, isRemoval: change.operation == .remove) }
        case .refused(let refusal):
            for ccid: String in refusal.ccids { refused(ccid, refusal.error) }
        }
    }

    private func confirm(_ ccid: String, _ ev: Version, isRemoval: Bool) {
        guard let index: Int = outstanding.firstIndex(where: { $0.ccid == ccid }) else { return }
        let key: String = outstanding.remove(at: index).key
        acknowledged.insert(ccid)
        if isRemoval {
            own[key] = nil
            texts[ccid] = nil
        } else if let text: String = texts.removeValue(forKey: ccid) {
            own[key] = (ev, text)
        }
    }

    private func refused(_ ccid: String, _ code: Int) {
        guard let index: Int = outstanding.firstIndex(where: { $0.ccid == ccid }) else { return }
        switch code {
        case ErrorCode.duplicateChange.rawValue:
            // It was applied before the crash. Its version is not known for sure: the object is left alone from now on.
            foundBefore += 1
            acknowledged.insert(ccid)
            let key: String = outstanding.remove(at: index).key
            texts[ccid] = nil
            own[key] = nil
        case ErrorCode.unavailable.rawValue:
            break  // stays unanswered and is sent again at the next connection
        default:
            faults.append("\(name): \(ccid) was refused with \(code)")
            outstanding.remove(at: index)
        }
    }

    /// Sends one change; false when there is nothing it could change now.
    private func sendOne() -> Bool {
        count += 1
        guard !isSealed else { return sendSealed(SealedText.changeID("\(name)-\(count)")) }
        let ccid: String = "\(name)-\(count)"
        if random.next() % 4 == 0 {
            // Everybody adds to the same object; each addition is a member of its own, so all must survive.
            return send(ccid, sharedKey, ["o": "M", "v": .object([ccid: ["o": "+", "v": 1]])])
        }
        let free: [String] = own.keys.filter { (key: String) in !outstanding.contains { $0.key == key } }.sorted()
        guard let key: String = free.randomElement(using: &random), free.count > 8 || random.next() % 2 == 0,
            let state: (version: Version, text: String) = own[key]
        else { return create(ccid) }
        if random.next() % 12 == 0 { return send(ccid, key, ["o": "-"]) }
        let word: String = "w\(random.next() % 1_000) "
        texts[ccid] = state.text + word
        let delta: String = "=\(state.text.utf16.count)\t+\(word)"
        return send(
            ccid, key,
            ["o": "M", "sv": .number(JSONNumber(state.version)), "v": ["text": ["o": "d", "v": .string(delta)]]])
    }

    /// As `sendOne`, of sealed objects.
    private func sendSealed(_ ccid: String) -> Bool {
        if random.next() % 4 == 0, sharedCount < Self.sharedMax {
            if let version: Version = sharedVersion {
                sharedCount += 1
                return send(ccid, sharedKey, SealedStand.operation(ccid), on: version)
            }
            if makesShared, !isSharedMade {
                isSharedMade = true
                return send(ccid, sharedKey, SealedStand.creation(ccid))
            }
        }
        let free: [String] = own.keys.filter { (key: String) in !outstanding.contains { $0.key == key } }.sorted()
        guard let key: String = free.randomElement(using: &random), free.count > 8 || random.next() % 2 == 0,
            let state: (version: Version, text: String) = own[key], var stand: SealedStand = .init(state.text)
        else {
            texts[ccid] = SealedStand().text
            return send(ccid, SealedText.key("\(name)-key-\(count)"), SealedStand.creation(ccid))
        }
        if random.next() % 12 == 0 { return send(ccid, key, ["o": "-"], on: state.version) }
        var members: JSONObject = SealedStand.operation(ccid)
        if stand.tail >= SealedStand.tailMax { (members, stand) = stand.compaction(ccid) } else { stand.tail += 1 }
        texts[ccid] = stand.text
        return send(ccid, key, members, on: state.version)
    }

    private func send(_ ccid: String, _ key: String, _ members: JSONObject, on version: Version) -> Bool {
        var members: JSONObject = members
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
        for (name, value): (String, JSONValue) in members.pairs { change[name] = value }
        let message: [UInt8] = Array("0:c:".utf8) + change.serialized()
        outstanding.append((ccid, key, message))
        socket?.send(message)
        return true
    }
}
