import Glibc
import Testing
import ThicketCrypto
import ThicketKeyLog
import ThicketPlatform
import ThicketProtocol

@testable import ThicketServer

/// A witness, at a real server and at one that lies.
@Suite("Key log: witnesses")
struct KeyLogWitnessTests {
    /// A witness with its state and what it has sent in memory.
    private final class Witness {
        let key = Ed25519.SigningKey.random()
        var state: [UInt8]?
        var confirmed = [[UInt8]]()
        /// What the disk and the server refuse now.
        var isDiskFull = false
        var losesConfirmations = false

        func run(
            now: Int64, _ ask: @escaping (String, String, [UInt8]) throws(WitnessRun.Failure) -> WitnessRun.Answer
        ) throws(WitnessRun.Failure) -> WitnessRun.Outcome {
            let run = WitnessRun(
                app: KeyLogServer.app, key: key, logKey: nil,
                ask: { (method, path, body) throws(WitnessRun.Failure) in
                    if method.utf8.elementsEqual("POST".utf8) {
                        self.confirmed.append(body)
                        if self.losesConfirmations { throw WitnessRun.Failure("the line went dead") }
                    }
                    return try ask(method, path, body)
                },
                keep: { (state) throws(WitnessRun.Failure) in
                    if self.isDiskFull { throw WitnessRun.Failure("the disk is full") }
                    self.state = state
                })
            return try run.run(state, now: UInt64(now))
        }

        func run(at bench: KeyLogServer, token: String) throws(WitnessRun.Failure) -> WitnessRun.Outcome {
            try run(now: bench.clock.now) { (method, path, body) throws(WitnessRun.Failure) in
                do {
                    let answer = try bench.ask(method, path, token: token, body: String(decoding: body, as: UTF8.self))
                    return WitnessRun.Answer(status: answer.status, body: Array(answer.body.utf8))
                } catch { throw WitnessRun.Failure("\(error)") }
            }
        }
    }

    /// A server that shows any log, in this process.
    private final class Liar {
        let key: Ed25519.SigningKey
        var log: KeyLog
        var time: Int64
        var withholds = false
        var shown: KeyLogHead?
        var rotations = [[UInt8]]()

        init(_ key: Ed25519.SigningKey, _ people: [KeyLogServer.Person], time: Int64) throws {
            (self.key, self.time) = (key, time)
            log = try KeyLog(
                app: KeyLogServer.app,
                entries: try people.map { try $0.first(of: try $0.user, at: 1_700_000_000_000).bytes })
        }

        func head() throws -> KeyLogHead { try log.head(time: UInt64(time), key: key) }

        func ask(_ method: String, _ path: String, _ body: [UInt8]) throws(WitnessRun.Failure) -> WitnessRun.Answer {
            do {
                if path.hasPrefix("keylog/head") {
                    let head = try shown ?? self.head()
                    return answer([
                        "key": .string(Base64.encodeURL(key.verifyingKey.octets)),
                        "head": .string(Base64.encodeURL(head.bytes)),
                        "rotations": .array(rotations.map { .string(Base64.encodeURL($0)) }),
                    ])
                }
                guard path.hasPrefix("keylog/consistency") else { return answer([:]) }
                let numbers = path.split { !$0.isNumber }.compactMap { UInt64($0) }
                guard !withholds, numbers.count == 2,
                    let way = try? log.consistency(older: numbers[0], newer: numbers[1])
                else { return WitnessRun.Answer(status: 400, body: []) }
                return answer(["proof": .string(Base64.encodeURL(way.bytes))])
            } catch { throw WitnessRun.Failure("\(error)") }
        }

        private func answer(_ object: JSONObject) -> WitnessRun.Answer {
            WitnessRun.Answer(status: 200, body: JSONValue.object(object).serialized())
        }
    }

    private static let people = (1...5).map { KeyLogServer.Person("person \($0)", UInt8($0)) }
    private static let time: Int64 = 1_800_000_000_000

    @Test(
        "a witness confirms each head of a real server, devices get that for an hour, and no other witness is accepted")
    func confirms() throws {
        let (witness, other) = (Witness(), Witness())
        let bench = try KeyLogServer(witnesses: [witness.key.verifyingKey])
        defer { bench.stop() }
        let token = try bench.token(of: KeyLogServer.Person("ann", 2))
        let logKey = try bench.logKey(token)
        guard case .confirmed(let head) = try witness.run(at: bench, token: token) else {
            Issue.record("not confirmed")
            return
        }
        #expect(head.size == 4)
        let shown = try bench.ask("GET", "keylog/head", token: token).object?["witnesses"]?.arrayValue ?? []
        let each = try #require(shown.first?.objectValue)
        let confirmation = try #require(KeyLogWitnesses.read(JSONValue.object(each).serialized()))
        #expect(shown.count == 1 && confirmation.head == head && confirmation.key == witness.key.verifyingKey)
        try confirmation.check(app: KeyLogServer.app, logKey: logKey, now: UInt64(bench.clock.now))

        #expect(throws: WitnessRun.Failure.self) { _ = try other.run(at: bench, token: token) }
        for body in ["", "{}", String(decoding: other.confirmed.first ?? [], as: UTF8.self)] {
            #expect(try bench.ask("POST", "keylog/witness", token: token, body: body).status == 400, "\(body)")
        }
        #expect(try bench.ask("POST", "keylog/witness", token: "no token", body: "{}").status == 401)
        _ = try bench.token(of: KeyLogServer.Person("bob", 3))
        guard case .confirmed(let next) = try witness.run(at: bench, token: token) else {
            Issue.record("not confirmed")
            return
        }
        #expect(next.size == 8)
        // A confirmation of an older head does not replace the newer one.
        let older = try bench.ask(
            "POST", "keylog/witness", token: token, body: String(decoding: witness.confirmed[0], as: UTF8.self))
        #expect(older.status == 400 && older.code == "olderHead")
        bench.clock.pass(seconds: 3_700)
        let late = try bench.ask("GET", "keylog/head", token: token)
        #expect(late.object?["witnesses"] == .array([]))
        let stale = try bench.ask(
            "POST", "keylog/witness", token: token, body: String(decoding: witness.confirmed[1], as: UTF8.self))
        #expect(stale.status == 400 && stale.code == "staleHead")
    }

    @Test(
        "A6: a witness refuses a fork and a log that shrank, keeps evidence, and confirms nothing until it is explained"
    )
    func fork() throws {
        let key = Ed25519.SigningKey.random()
        let honest = try Liar(key, Array(Self.people.prefix(3)), time: Self.time)
        for (kept, isProven) in [([0, 1, 3], true), ([0, 1, 3, 4], true), ([0, 1], false), ([3], false)] {
            let witness = Witness()
            guard case .confirmed = try witness.run(now: Self.time, honest.ask) else {
                Issue.record("not confirmed")
                continue
            }
            let liar = try Liar(key, kept.map { Self.people[$0] }, time: Self.time)
            guard case .fork(let evidence) = try witness.run(now: Self.time, liar.ask) else {
                Issue.record("\(kept): no fork")
                continue
            }
            let proof = try KeyLogEvidence(file: JSONValue.object(evidence.json).serialized()).check(key.verifyingKey)
            if case .proven = proof { #expect(isProven, "\(kept)") } else { #expect(!isProven, "\(kept): \(proof)") }
            // Also when the server shows the first log again, unless that shows how the two heads are connected.
            honest.withholds = true
            guard case .fork(let again) = try witness.run(now: Self.time, honest.ask) else {
                Issue.record("\(kept): forgotten")
                continue
            }
            #expect(again.isSameFinding(as: evidence) && witness.confirmed.count == 1, "\(kept)")
            honest.withholds = false
            if case .confirmed = try witness.run(now: Self.time, honest.ask) {
                #expect(kept == [0, 1], "a shorter log of the same entries")
            } else {
                #expect(kept != [0, 1] && witness.confirmed.count == 1, "\(kept)")
            }
        }
    }

    @Test("an older head, a stale one, one of another key and an empty log are not confirmed, and change no state")
    func refuses() throws {
        let (key, witness) = (Ed25519.SigningKey.random(), Witness())
        let server = try Liar(key, Array(Self.people.prefix(2)), time: Self.time)
        let first = try server.head()
        _ = try witness.run(now: Self.time, server.ask)
        server.log = try Liar(key, Array(Self.people.prefix(4)), time: Self.time).log
        _ = try witness.run(now: Self.time, server.ask)
        let state = witness.state
        server.shown = first
        #expect(throws: WitnessRun.Failure.self) { _ = try witness.run(now: Self.time, server.ask) }
        server.shown = nil
        #expect(throws: WitnessRun.Failure.self) { _ = try witness.run(now: Self.time + 3_700_000, server.ask) }
        #expect(throws: WitnessRun.Failure.self) { _ = try witness.run(now: Self.time - 400_000, server.ask) }
        let other = try Liar(.random(), Array(Self.people.prefix(4)), time: Self.time)
        #expect(throws: WitnessRun.Failure.self) { _ = try witness.run(now: Self.time, other.ask) }
        #expect(witness.state == state && witness.confirmed.count == 2)
        // The new key is followed once the old one has signed it.
        other.rotations = [try LogKeyRotation(app: KeyLogServer.app, from: key, to: other.key, time: 1).bytes]
        guard case .confirmed = try witness.run(now: Self.time, other.ask) else {
            Issue.record("not followed")
            return
        }
    }

    @Test(
        "nothing is confirmed before the state is on disk; a lost confirmation is made again; a damaged state is refused"
    )
    func interrupted() throws {
        let witness = Witness()
        let server = try Liar(.random(), Array(Self.people.prefix(2)), time: Self.time)
        witness.isDiskFull = true
        #expect(throws: WitnessRun.Failure.self) { _ = try witness.run(now: Self.time, server.ask) }
        #expect(witness.confirmed.isEmpty && witness.state == nil)
        (witness.isDiskFull, witness.losesConfirmations) = (false, true)
        #expect(throws: WitnessRun.Failure.self) { _ = try witness.run(now: Self.time, server.ask) }
        let state = try #require(witness.state)
        witness.losesConfirmations = false
        guard case .confirmed = try witness.run(now: Self.time, server.ask) else {
            Issue.record("not repeated")
            return
        }
        #expect(witness.confirmed.count == 2)
        for count in 0..<state.count {
            witness.state = Array(state.prefix(count))
            #expect(throws: WitnessRun.Failure.self, "\(count)") { _ = try witness.run(now: Self.time, server.ask) }
        }
        #expect(witness.confirmed.count == 2)
    }

    @Test("the state file is replaced whole, also over the draft of a program that was killed")
    func stateFile() throws {
        let folder = "/tmp/thicket-witness-\(getpid())-\(RandomBytes.hex(6))"
        mkdir(folder, 0o700)
        defer { for name in ["/state", "/state.new", ""] { remove(folder + name) } }
        let path = folder + "/state"
        #expect(FileText.readBytes(path, bytesMax: 16) == nil)
        let draft = open(path + ".new", O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        _ = write(draft, "torn", 4)
        close(draft)
        try WitnessCommand.replace(path, [1, 2, 3])
        #expect(FileText.readBytes(path, bytesMax: 16) == [1, 2, 3])
        try WitnessCommand.replace(path, [4])
        #expect(FileText.readBytes(path, bytesMax: 16) == [4] && access(path + ".new", F_OK) != 0)
        #expect(throws: WitnessRun.Failure.self) { try WitnessCommand.replace(folder + "/none/state", [1]) }
    }

    @Test("a confirmation from before, which everyone can send again, replaces no later one of the same size")
    func replayed() throws {
        let (key, witness) = (Ed25519.SigningKey.random(), Ed25519.SigningKey.random())
        func confirmed(_ time: Int64) throws -> KeyLogWitness {
            let head = try Liar(key, Array(Self.people.prefix(2)), time: time).head()
            return try KeyLogWitness(
                confirming: head, app: KeyLogServer.app, logKey: key.verifyingKey, key: witness)
        }
        let (early, late) = (try confirmed(Self.time), try confirmed(Self.time + 60_000))
        var kept = KeyLogWitnesses([witness.verifyingKey])
        func add(_ confirmation: KeyLogWitness) -> KeyLogError.Kind? {
            do throws(KeyLogError) {
                try kept.add(
                    confirmation, app: KeyLogServer.app, logKey: key.verifyingKey, now: UInt64(Self.time + 61_000))
                return nil
            } catch { return error.kind }
        }
        #expect(add(early) == nil && add(late) == nil && add(early) == .olderHead && add(late) == nil)
    }

    @Test("the setting has up to eight keys, and no other text", arguments: ["x", "00", "none,none", "\u{E9}"])
    func setting(text: String) throws {
        #expect(KeyLogWitnesses.keys(text) == nil)
        #expect(KeyLogWitnesses.keys("none")?.isEmpty == true)
        let keys = (0..<9).map { _ in Ed25519.SigningKey.random().verifyingKey }
        let words = keys.map { Hex.encode($0.octets) }
        #expect(KeyLogWitnesses.keys(words.prefix(8).joined(separator: ", ")) == Array(keys.prefix(8)))
        #expect(KeyLogWitnesses.keys(words.joined(separator: ",")) == nil)
    }
}
