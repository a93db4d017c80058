import ThicketClient
import ThicketCommandLine
import ThicketCrypto
import ThicketKeyLog
import ThicketPlatform
import ThicketProtocol

/// `thicket keylog`: what this machine knows of the key log, and its alarms.
enum KeyLogCommand {
    static func run(_ call: Call) async throws(Failure) {
        let (isReset, witness) = (call.flag("reset"), try key(call.value("require-witness"), "--require-witness"))
        let dropsWitnesses = call.flag("no-witness")
        guard !(dropsWitnesses && witness != nil) else {
            throw Failure("either --require-witness or --no-witness", .usage)
        }
        let result = try await PeopleCall.run(call, "the key log was not looked at") { book throws(PeopleError) in
            if isReset { try await book.reset() }
            if dropsWitnesses { try await book.dropWitnesses() }
            if let witness { try await book.requireWitness(witness.octets) }
            let check: Result<KeyBook.OwnCheck, PeopleError>
            do throws(PeopleError) { check = .success(try await book.checkOwn()) } catch { check = .failure(error) }
            let witnessed: Result<Void, PeopleError>
            do throws(PeopleError) { witnessed = .success(try await book.demandWitnesses()) } catch {
                witnessed = .failure(error)
            }
            return (check, witnessed, try await book.log(), try await book.alarms())
        }
        let (check, witnessed, log, alarms) = result
        if let path = call.value("evidence") { try write(alarms, to: path) }
        if call.flag("json") { json(check, log, alarms) } else { text(check, log) }
        if alarms.contains(where: \.isOpen) { throw Failure("", .alarm) }
        if case .failure(let error) = check { throw Failure("the own entries were not checked", people: error) }
        if case .failure(let error) = witnessed {
            throw Failure("nothing of the key log is believed now", people: error, about: nil)
        }
    }

    private static func text(_ check: Result<KeyBook.OwnCheck, PeopleError>, _ log: KeyBook.Log) {
        Terminal.write("key of the log: \(log.key.map { Hex.encode($0) } ?? "not known yet")\n")
        if let head = log.head {
            Terminal.write(
                "newest head: \(head.size / 2) entries, signed \(Days.text(Int64(clamping: head.time / 1_000)))\n")
        }
        Terminal.write("known users: \(log.users)\n")
        for witness in log.witnesses { Terminal.write("required witness: \(Hex.encode(witness))\n") }
        if !log.witnesses.isEmpty {
            let time = log.witnessed.map { "a head of \(Days.text(Int64(clamping: $0 / 1_000)))" } ?? "nothing yet"
            Terminal.write("confirmed by the required witnesses: \(time)\n")
        }
        if case .success(let check) = check {
            let line =
                switch check {
                case .asCreated: "own entries: as made by this account"
                case .appended(let count): "own entries: \(count) were missing and are appended now"
                }
            Terminal.write(line + "\n")
        }
    }

    private static func json(
        _ check: Result<KeyBook.OwnCheck, PeopleError>, _ log: KeyBook.Log, _ alarms: [PeopleAlarm]
    ) {
        var object: JSONObject = ["users": .number(JSONNumber(Int64(log.users)))]
        object["log_key"] = log.key.map { .string(Hex.encode($0)) } ?? .null
        object["entries"] = log.head.map { .number(JSONNumber(Int64(clamping: $0.size / 2))) } ?? .null
        object["head"] = log.head.map { .string(Base64.encodeURL($0.bytes)) } ?? .null
        let own =
            switch check {
            case .success: "as-created"
            case .failure(let error): error.code
            }
        object["own"] = .string(own)
        object["witnesses"] = .array(log.witnesses.map { .string(Hex.encode($0)) })
        object["witnessed"] = log.witnessed.map { .number(JSONNumber(Int64(clamping: $0))) } ?? .null
        object["alarms"] = .array(
            alarms.map { .object(["open": .bool($0.isOpen), "evidence": .object($0.evidence.json)]) })
        Terminal.write(JSONValue.object(object).serializedText + "\n")
    }

    /// One file has one finding: the newest that is not resolved.
    private static func write(_ alarms: [PeopleAlarm], to path: String) throws(Failure) {
        guard let alarm = alarms.last(where: \.isOpen) ?? alarms.last else {
            throw Failure("there is no evidence: nothing was found", .notFound)
        }
        try Files.replace(path, Pretty.bytes(.object(alarm.evidence.json)), mode: 0o644)
        Terminal.writeError("evidence written to \(Screen.safe(path)): \(Screen.safe(alarm.evidence.summary))\n")
    }

    static func key(_ hex: String?, _ option: String) throws(Failure) -> Ed25519.VerifyingKey? {
        guard let hex else { return nil }
        guard let octets = Hex.decode(hex), let key: Ed25519.VerifyingKey = try? .init(octets) else {
            throw Failure("\(option) needs a public key of 64 hexadecimal digits", .usage)
        }
        return key
    }
}

/// `thicket verify-evidence`: what evidence of an alarm proves. Needs no server and no login.
enum VerifyEvidenceCommand {
    static func run(_ call: Call) throws(Failure) {
        let path = call.argument("FILE")
        let key = try KeyLogCommand.key(call.value("log-key"), "--log-key")
        let bytes: [UInt8]
        switch Files.read(path, bytesMax: KeyLogEvidence.fileBytesMax) {
        case .bytes(let found): bytes = found
        case .absent: throw Failure("\(path) does not exist")
        case .failed(let reason): throw Failure("\(path) cannot be read: \(reason)")
        }
        let evidence: KeyLogEvidence
        do throws(KeyLogError) { evidence = try KeyLogEvidence(file: bytes) } catch {
            throw Failure("\(path) is not evidence: \(error.description)")
        }
        let source = key == nil ? "named in the file; compare it with the log's key from another source" : "as given"
        let line =
            "app \(Screen.safe(evidence.app)), key of the log \(Hex.encode(evidence.logKey.octets)) (\(source))\n"
        switch evidence.check(key) {
        case .proven(let what): Terminal.write("proven: \(Screen.safe(what))\n\(line)")
        case .notProven(let what):
            Terminal.write(line)
            throw Failure("not proven: \(Screen.safe(what))")
        }
    }
}
