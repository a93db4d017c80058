import ThicketProcesses
import ThicketProtocol
import ThicketTestSupport

/// A client as the older libraries are, over a plain socket: it walks the index, goes on from the changes, sends one
/// change of an object at a time and sends it again, as it was, after a connection is lost.
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
    private var objects: [String: Object] = [:]
    /// Versions of objects that were removed.
    private var gone: [String: Version] = [:]
    private var cv: String?
    /// The position of the walk that is under way.
    private var walk: String?
    private var isLive: Bool = false
    /// Objects asked for because a change did not fit.
    private var wanted: [String: Version] = [:]
    /// By key: the ccid and the message, as it went.
    private var outstanding: [String: (ccid: String, message: [UInt8])] = [:]
    private var count: Int = 0

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
        while tally.goesOn {
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
        let deadline: Int64 = Steady.milliseconds() + 90_000
        while !isLive || !outstanding.isEmpty || !wanted.isEmpty {
            turn()
            guard Steady.milliseconds() < deadline else {
                throw ProcessError("live: \(isLive), unanswered: \(outstanding.keys.sorted()), wanted: \(wanted)")
            }
            await tally.sleep(milliseconds: 10)
        }
    }

    /// Reads what is on the way to it still, up to the answer of a heartbeat.
    func content(of bucket: String) async throws -> [String: String]? {
        guard bucket.utf8.elementsEqual(self.bucket.utf8) else { return nil }
        guard let cv: String, let socket: WireSocket else { throw ProcessError("\(name) is not connected") }
        socket.send("0:cv:\(cv)")
        isLive = false
        try await settle()
        return objects.mapValues { "\($0.version) \(JSONValue.object($0.value).serializedText)" }
    }

    func leave() { drop() }

    private func drop() {
        socket = nil
        isLive = false
        walk = nil
        wanted = [:]
    }

    // MARK: Listening

    /// Reads what has come; connects when there is no connection.
    private func turn() {
        guard let socket: WireSocket else { return connect() }
        for bytes: [UInt8] in socket.take() {
            guard case .channel(0, let reply)? = try? ServerMessage(parsing: bytes) else { continue }
            receive(reply)
        }
        if socket.isClosed { drop() }
    }

    private func connect() {
        guard let made: WireSocket = try? WireSocket(port: port, app: Endurance.app) else { return }
        var hello: InitRequest = .init()
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
            if let cv: String { socket?.send("0:cv:\(cv)") } else { ask(nil) }
        case .authFailed(let code, let text):
            if code < 500 { tally.fault("\(name): \(code) \(text)") }
            drop()
        case .index(let page): receive(page)
        case .changes(let events):
            for event: ChangeEvent in events { receive(event) }
            if walk == nil { becomeLive() }
        case .changeVersionUnknown:
            (cv, walk) = (nil, nil)
            ask(nil)
        case .entity(let reply):
            guard let version: Version = wanted[reply.key], reply.version >= version else { return }
            wanted[reply.key] = nil
            guard let value: JSONObject = reply.data?.object else { return begin() }
            if reply.version > objects[reply.key]?.version ?? 0 {
                objects[reply.key] = Object(version: reply.version, value: value)
            }
        default: break
        }
    }

    /// Reads everything anew.
    private func begin() {
        (cv, walk) = (nil, nil)
        isLive = false
        ask(nil)
    }

    private func receive(_ page: IndexPage) {
        if walk == nil {
            walk = page.current.text
            objects = [:]
            gone = [:]
        }
        for entry: IndexPage.Entry in page.entries {
            guard let value: JSONObject = entry.data?.object else { continue }
            objects[entry.key.text] = Object(version: entry.version, value: value)
        }
        if let mark: String = page.mark { return ask(mark) }
        cv = walk
        walk = nil
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
            if walk == nil { cv = change.cv.text }
            for (key, sent) in outstanding where change.ccids.contains(where: { $0.utf8.elementsEqual(sent.ccid.utf8) })
            {
                outstanding[key] = nil
            }
            apply(change)
        case .refused(let refusal):
            guard let sent = outstanding[refusal.key], refusal.ccids.contains(sent.ccid) else { return }
            if refusal.error >= 500 {
                // Sent again with the next connection.
                return drop()
            }
            if refusal.error != ErrorCode.duplicateChange.rawValue { tally.refusals.add(1, ordering: .relaxed) }
            outstanding[refusal.key] = nil
        }
    }

    private func apply(_ change: AppliedChange) {
        let key: String = change.key.text
        let known: Version = max(objects[key]?.version ?? 0, gone[key] ?? 0)
        guard change.ev > known else { return }
        if change.operation == .remove {
            objects[key] = nil
            gone[key] = change.ev
            return
        }
        let isNew: Bool = (change.sv ?? 0) == 0
        let base: JSONObject? = isNew ? JSONObject() : objects[key]?.version == change.sv ? objects[key]?.value : nil
        guard let base: JSONObject, let fragment: JSONFragment = change.diff,
            let diff: ObjectDiff = try? ObjectDiff(fragment.value),
            let next: JSONObject = try? JSONDiff.apply(diff, to: base)
        else {
            wanted[key] = change.ev
            socket?.send(ClientMessage.channel(0, .entity(key: key, version: change.ev)).encoded())
            return
        }
        objects[key] = Object(version: change.ev, value: next)
    }

    // MARK: Editing

    private func edit() {
        let key: String = EnduringKeys.any(&random)
        guard outstanding[key] == nil, wanted[key] == nil else { return }
        count += 1
        var change: ChangeRequest = .init(key: key, ccid: "\(name)-\(bucket)-\(count)", operation: .modify)
        if let object: Object = objects[key] {
            change.sv = object.version
            if random.next() % 16 == 0 {
                change.operation = .remove
            } else {
                change.diff = .value(diff(of: object.value))
            }
        } else {
            change.diff = .value(["t": ["o": "+", "v": "begin "], "n": ["o": "+", "v": 1]])
        }
        let message: [UInt8] = ClientMessage.channel(0, .change(change)).encoded()
        outstanding[key] = (change.ccid, message)
        socket?.send(message)
        tally.edited()
    }

    private func diff(of object: JSONObject) -> JSONValue {
        var next: JSONObject = object
        if random.next() % 3 == 0 {
            next["n"] = .number(JSONNumber(Int64(random.next() % 1_000_000)))
        } else {
            let text: String = object["t"]?.stringValue ?? ""
            let isLong: Bool = text.utf16.count > EnduringKeys.textMax
            next["t"] = .string((isLong ? String(text.suffix(400)) : text) + "v\(random.next() % 1_000) ")
        }
        return JSONDiff.diff(from: object, to: next).json
    }
}
