import ThicketProcesses
import ThicketProtocol
import ThicketTestSupport

/// A client like the older libraries, over a plain socket: it scans the index, continues from the changes, sends one
/// change of an object at a time and sends it again, unchanged, after a connection is lost.
actor WireMember: EnduringMember {
    private struct Object {
        var version: Version
        var value: JSONObject
    }

    nonisolated let name: String
    nonisolated let user: Int
    private let port: UInt16
    private let token: String
    private let bucket: String
    private let settings: Endurance.Settings
    private let tally: EnduranceTally
    private var random: SeededRandom
    private var socket: WireSocket?
    private var objects = [String: Object]()
    /// Versions of objects that were removed.
    private var gone = [String: Version]()
    private var cv: String?
    /// The position of the index scan in progress.
    private var scanPosition: String?
    private var isLive = false
    /// Objects requested because a change did not fit.
    private var wanted = [String: Version]()
    /// By key: the ccid and the message, as it was sent.
    private var outstanding = [String: (ccid: String, message: [UInt8])]()
    private var count = 0

    init(
        number: Int, user: Int, port: UInt16, token: String, bucket: String, settings: Endurance.Settings,
        tally: EnduranceTally
    ) {
        name = "socket-\(number)"
        self.user = user
        (self.port, self.token, self.bucket) = (port, token, bucket)
        (self.settings, self.tally) = (settings, tally)
        random = SeededRandom(seed: settings.seed &+ UInt64(number))
    }

    func live() async {
        while tally.isRunning {
            turn()
            if isLive, outstanding.count < 4 {
                if random.next() % 500 == 0 {
                    tally.absences.add(1, ordering: .relaxed)
                    drop()
                    await tally.pause(seconds: Double.random(in: 0...settings.awaySeconds, using: &random))
                } else {
                    edit()
                }
            }
            await tally.sleep(milliseconds: Int.random(in: settings.pauseMilliseconds, using: &random))
        }
    }

    func settle() async throws {
        let deadline = Steady.milliseconds() + 90_000
        while !isLive || !outstanding.isEmpty || !wanted.isEmpty {
            turn()
            guard Steady.milliseconds() < deadline else {
                throw ProcessError("live: \(isLive), unanswered: \(outstanding.keys.sorted()), wanted: \(wanted)")
            }
            await tally.sleep(milliseconds: 10)
        }
    }

    /// Reads everything that is still in transit, up to the answer of a heartbeat.
    func content(of bucket: String) async throws -> [String: String]? {
        guard bucket.utf8.elementsEqual(self.bucket.utf8) else { return nil }
        guard let cv, let socket else { throw ProcessError("\(name) is not connected") }
        socket.send("0:cv:\(cv)")
        isLive = false
        try await settle()
        return objects.mapValues { "\($0.version) \(JSONValue.object($0.value).serializedText)" }
    }

    func leave() { drop() }

    private func drop() {
        socket = nil
        isLive = false
        scanPosition = nil
        wanted = [:]
    }

    // MARK: Receiving

    /// Reads what has arrived; connects if it has no connection.
    private func turn() {
        guard let socket else { return connect() }
        for bytes in socket.take() {
            guard case .channel(0, let reply)? = try? ServerMessage(parsing: bytes) else { continue }
            receive(reply)
        }
        if socket.isClosed { drop() }
    }

    private func connect() {
        guard let made = try? WireSocket(port: port, app: Endurance.app) else { return }
        var hello = InitRequest()
        (hello.clientID, hello.api, hello.token, hello.appID) = (name, "1.1", token, Endurance.app)
        (hello.name, hello.library, hello.version) = (bucket, "older", "1")
        made.send(ClientMessage.channel(0, .initialize(hello)).encoded())
        socket = made
    }

    private func ask(_ mark: String?) {
        socket?.send(
            ClientMessage.channel(0, .index(IndexRequest(wantsData: true, mark: mark, limit: 40))).encoded())
    }

    private func receive(_ reply: ServerReply) {
        switch reply {
        case .authorized:
            if let cv { socket?.send("0:cv:\(cv)") } else { ask(nil) }
        case .authFailed(let code, let text):
            if code < 500 { tally.fault("\(name): \(code) \(text)") }
            drop()
        case .index(let page): receive(page)
        case .changes(let events):
            for event in events { receive(event) }
            if scanPosition == nil { becomeLive() }
        case .changeVersionUnknown:
            (cv, scanPosition) = (nil, nil)
            ask(nil)
        case .entity(let reply):
            guard let version = wanted[reply.key], reply.version >= version else { return }
            wanted[reply.key] = nil
            guard let value = reply.data?.object else { return begin() }
            if reply.version > objects[reply.key]?.version ?? 0 {
                objects[reply.key] = Object(version: reply.version, value: value)
            }
        default: break
        }
    }

    /// Reads everything from the start.
    private func begin() {
        (cv, scanPosition) = (nil, nil)
        isLive = false
        ask(nil)
    }

    private func receive(_ page: IndexPage) {
        if scanPosition == nil {
            scanPosition = page.current.text
            objects = [:]
            gone = [:]
        }
        for entry in page.entries {
            guard let value = entry.data?.object else { continue }
            objects[entry.key.text] = Object(version: entry.version, value: value)
        }
        if let mark = page.mark { return ask(mark) }
        cv = scanPosition
        scanPosition = nil
        becomeLive()
    }

    private func becomeLive() {
        guard !isLive else { return }
        isLive = true
        for (_, change) in outstanding.sorted(by: { $0.key < $1.key }) { socket?.send(change.message) }
    }

    private func receive(_ event: ChangeEvent) {
        switch event {
        case .applied(let change):
            if scanPosition == nil { cv = change.cv.text }
            for (key, sent) in outstanding where change.ccids.contains(where: { $0.utf8.elementsEqual(sent.ccid.utf8) })
            {
                outstanding[key] = nil
            }
            apply(change)
        case .refused(let refusal):
            guard let sent = outstanding[refusal.key], refusal.ccids.contains(sent.ccid) else { return }
            if refusal.error >= 500 {
                // The change is sent again with the next connection.
                return drop()
            }
            if refusal.error != ErrorCode.duplicateChange.rawValue { tally.refusals.add(1, ordering: .relaxed) }
            outstanding[refusal.key] = nil
        }
    }

    private func apply(_ change: AppliedChange) {
        let key = change.key.text
        let known = max(objects[key]?.version ?? 0, gone[key] ?? 0)
        guard change.ev > known else { return }
        if change.operation == .remove {
            objects[key] = nil
            gone[key] = change.ev
            return
        }
        let isNew = (change.sv ?? 0) == 0
        let base = isNew ? JSONObject() : objects[key]?.version == change.sv ? objects[key]?.value : nil
        guard let base, let fragment = change.diff,
            let diff = try? ObjectDiff(fragment.value),
            let next = try? JSONDiff.apply(diff, to: base)
        else {
            wanted[key] = change.ev
            socket?.send(ClientMessage.channel(0, .entity(key: key, version: change.ev)).encoded())
            return
        }
        objects[key] = Object(version: change.ev, value: next)
    }

    // MARK: Editing

    private func edit() {
        let key = EnduringKeys.any(&random)
        guard outstanding[key] == nil, wanted[key] == nil else { return }
        count += 1
        var change = ChangeRequest(key: key, ccid: "\(name)-\(bucket)-\(count)", operation: .modify)
        if let object = objects[key] {
            change.sv = object.version
            if random.next() % 16 == 0 {
                change.operation = .remove
            } else {
                change.diff = .value(diff(of: object.value))
            }
        } else {
            change.diff = .value(["t": ["o": "+", "v": "begin "], "n": ["o": "+", "v": 1]])
        }
        let message = ClientMessage.channel(0, .change(change)).encoded()
        outstanding[key] = (change.ccid, message)
        socket?.send(message)
        tally.edited()
    }

    private func diff(of object: JSONObject) -> JSONValue {
        var next = object
        if random.next() % 3 == 0 {
            next["n"] = .number(JSONNumber(Int64(random.next() % 1_000_000)))
        } else {
            let text = object["t"]?.stringValue ?? ""
            let isLong = text.utf16.count > EnduringKeys.textMax
            next["t"] = .string((isLong ? String(text.suffix(400)) : text) + "v\(random.next() % 1_000) ")
        }
        return JSONDiff.diff(from: object, to: next).json
    }
}
