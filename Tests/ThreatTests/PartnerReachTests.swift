import Glibc
import Testing
import ThicketCrypto
import ThicketPlatform
import ThicketProcesses
import ThicketProtocol
import ThicketThreats

/// A partner turns against its users: it can log in as each of them, and reads what it can.
@Suite("A partner, and the owner of an app, against their users")
struct PartnerReachTests {
    /// A user's own device: it seals its texts with a key that never leaves it.
    private struct Device {
        let key = SecureBytes.random(32)

        func seal(_ text: String) throws -> String {
            Base64.encodeURL(try SealedMessage.seal(Array(text.utf8), key: key, data: Array("note".utf8)))
        }

        func open(_ text: String) -> String? {
            guard let bytes = Base64.decodeURL(Array(text.utf8)[...]),
                let clear = try? SealedMessage.open(bytes, key: key, data: Array("note".utf8))
            else { return nil }
            return String(decoding: clear, as: UTF8.self)
        }
    }

    @Test("T23: a partner that issues a token for its user reads ciphertext on every path, and clear text nowhere")
    func partner() throws {
        let house = try ThreatHouse("reach", ["--changes-wait", "0s"])
        let caller = try house.caller()
        let entity = try house.register("p1", by: caller)
        let clear = (0..<3).map { "the user's words, version \($0), \(RandomBytes.hex(8))" }
        let device = Device()
        let sealed = try clear.map(device.seal)
        let base = "/1/\(ThreatHouse.shop)"
        let socket = try open(house, entity, device: "own")
        for (place, text) in sealed.enumerated() {
            let change = place == 0 ? #"{"o":"+","v":"\#(text)"}"# : #"{"o":"r","v":"\#(text)"}"#
            let source = place == 0 ? "" : "\"sv\":\(place),"
            socket.send(#"0:c:{"id":"9f2c","o":"M",\#(source)"ccid":"c\#(place)","v":{"s":\#(change)}}"#)
            let version = try socket.next { (message: ServerMessage) -> Int? in
                guard case .channel(0, .changes(let events)) = message, case .applied(let change)? = events.first else {
                    return nil
                }
                return Int(change.ev)
            }
            #expect(version == place + 1)
        }

        let own = [
            ("x-simperium-token", house.login(entity, "p1", device: "own")), ("x-rezolve-device-id", "own"),
        ]
        let (bundle, proof) = (try device.seal(clear[0]), Base64.encodeURL(RandomBytes.make(32)))
        #expect(
            try caller.ask(
                "PUT", "\(base)/auth/bundle", own,
                body: #"{"version":0,"bundle":"\#(bundle)","access":null,"recover":"\#(proof)"}"#
            ).status == 200)

        // The partner, on a device that it made up.
        let spy = try open(house, entity, device: "spy")
        for ask in ["0:i:1:::100", "0:e:9f2c.1", "0:e:9f2c.2", "0:e:9f2c.3", "0:cv:"] { spy.send(ask) }
        var read = [UInt8]()
        let deadline = Steady.milliseconds() + 120_000
        while Steady.milliseconds() < deadline {
            read += spy.take().flatMap { $0 + [10] }
            if Self.count(sealed, in: read) == sealed.count { break }
            WireSocket.wait([spy], milliseconds: 50)
        }
        let shown = [
            ("x-simperium-token", house.login(entity, "p1", device: "spy")), ("x-rezolve-device-id", "spy"),
        ]
        for path in [
            "b/index?data=1", "b/i/9f2c", "b/i/9f2c/v/1", "b/changes", "buckets", "user", "auth/bundle", "auth/tokens",
        ] {
            let reply = try caller.ask("GET", "\(base)/\(path)", shown)
            #expect(reply.status == (path == "auth/tokens" ? 401 : 200), "\(path): \(reply.status)")
            if path == "auth/bundle" { #expect(try reply.string("bundle") == bundle, "only what is sealed") }
            if path.hasPrefix("b/i") { #expect(Self.count(sealed, in: reply.body) == 1, "\(path)") }
            read += reply.body
        }
        for (proof, status) in [
            ("", 400), (#","r":"\#(Base64.encodeURL(RandomBytes.make(32)))""#, 403),
        ] {
            let reply = try caller.ask(
                "PUT", "\(base)/auth/bundle", shown, body: #"{"version":1,"bundle":"\#(bundle)"\#(proof)}"#)
            #expect(reply.status == status)
        }
        #expect(try caller.ask("GET", "\(base)/auth/bundle", own).string("bundle") == bundle)
        let fields = house.partnerFields(
            house.login(entity, "p1", device: "spy"), device: "spy")
        for last in ["publickey", "devices"] {
            let reply = try caller.ask(
                "GET", "/api/v1/partner/\(ThreatHouse.partner)/customer/\(entity)/\(last)", fields)
            #expect(reply.status == 200)
            read += reply.body
        }
        #expect(Self.count(sealed, in: read) == sealed.count, "the partner did not even reach the ciphertext")
        try Self.expectSealed(clear, in: read, "what the partner read")
        for file in ThreatHouse.files(house.folder.path) {
            try Self.expectSealed(clear, in: file.bytes, file.path)
        }
        // The ciphertext is the user's own: complete, and opened by no other key.
        #expect(sealed.compactMap(device.open) == clear)
        #expect(sealed.compactMap(Device().open).isEmpty)
        #expect(try house.daemon.terminate().code == 0)
    }

    @Test(
        "T23: an app's owner with the admin key gets no user's bundle and no way to set a user's password"
    )
    func owner() throws {
        let house = try ThreatHouse("owner", ["--changes-wait", "0s"])
        let caller = try house.caller()
        let device = Device()
        let clear = "a vault secret, " + RandomBytes.hex(12)
        let (access, bundle) = (try device.seal("an access key"), try device.seal(clear))
        let proof = Base64.encodeURL(RandomBytes.make(32))
        let auth = "/1/\(ThreatHouse.app)/auth"
        let made = try caller.ask(
            "POST", "\(auth)/signup", [("x-simperium-api-key", house.apiKey)],
            body: #"{"u":"kay","a":"\#(proof)","kdf":1,"salt":"\#(Base64.encodeURL(RandomBytes.make(16)))","#
                + #""access":"\#(access)","bundle":"\#(bundle)","recover":"\#(proof)"}"#)
        #expect(made.status == 200)
        let token = try made.string("access_token")
        let words = try device.seal("words")
        #expect(
            try caller.ask(
                "POST", "/1/\(ThreatHouse.app)/b/i/k", [("x-simperium-token", token)], body: #"{"s":"\#(words)"}"#
            ).status == 200)

        let admin = house.adminKey
        let id = try made.string("userid")
        var read = [UInt8]()
        for user in ["kay", id] {
            let acting = [
                ("x-simperium-token", admin), ("x-simperium-api-key", admin), ("x-simperium-user", user),
            ]
            for (method, path) in [
                ("GET", "auth/bundle"), ("GET", "auth/tokens"), ("GET", "b/index?data=1"), ("GET", "b/i/k"),
                ("GET", "b/changes"), ("GET", "buckets"), ("GET", "user"),
            ] {
                let reply = try caller.ask(method, "/1/\(ThreatHouse.app)/\(path)", acting)
                if path.hasPrefix("auth") { #expect(reply.status == 401, "\(path)") }
                read += reply.body
            }
            for (path, body) in [
                ("reset_password", #"{"username":"\#(user)","new_password":"something"}"#),
                ("authorize", #"{"username":"\#(user)","password":"something"}"#),
                ("auth/login", #"{"u":"\#(user)","a":"\#(Base64.encodeURL(RandomBytes.make(32)))","device":"x"}"#),
                ("auth/prelogin", #"{"u":"\#(user)"}"#),
            ] {
                let reply = try caller.ask("POST", "/1/\(ThreatHouse.app)/\(path)", acting, body: body)
                #expect(
                    path == "auth/prelogin" || [400, 401, 404].contains(reply.status),
                    "\(user), \(path): \(reply.status)")
                read += reply.body
            }
        }
        #expect(Self.count([words], in: read) == 1, "the owner did not even reach the user's ciphertext")
        #expect(Self.count([bundle, access], in: read) == 0, "the owner read a bundle")
        try Self.expectSealed([clear], in: read, "what the owner read")
        // The user still logs in as before, and finds the bundle unchanged.
        let back = try caller.ask(
            "POST", "\(auth)/login", [("x-simperium-api-key", house.apiKey)],
            body: #"{"u":"kay","a":"\#(proof)","device":"phone"}"#)
        #expect(device.open(try back.string("bundle")) == clear)
        #expect(try house.daemon.terminate().code == 0)
    }

    // MARK: Parts

    private static func expectSealed(_ clear: [String], in bytes: [UInt8], _ place: String) throws {
        let found = CanarySearch(clear.map { Canary("what the user wrote", $0) }).findings(
            in: bytes, place: place)
        #expect(found.isEmpty, "\(found)")
    }

    /// The number of the texts that are in `bytes`.
    private static func count(_ texts: [String], in bytes: [UInt8]) -> Int {
        CanarySearch(texts.map { Canary("it", $0) }).found(in: bytes).count
    }

    private func open(_ house: ThreatHouse, _ entity: String, device: String) throws -> WireSocket {
        let socket = try WireSocket(port: house.port, app: ThreatHouse.shop)
        let token = house.login(entity, "p1", device: device)
        socket.send(
            "0:init:{\"clientid\":\"\(device)\",\"api\":\"1.1\",\"token\":\"\(token)\",\"app_id\":\"shop\",\"name\":\"b\",\"device_id\":\"\(device)\"}"
        )
        _ = try socket.next { (message: ServerMessage) -> Bool? in
            if case .channel(0, .authorized(let user)) = message, user == entity { true } else { nil }
        }
        return socket
    }
}
