import ThicketClient
import ThicketProcesses
import ThicketProtocol
import ThicketTestSupport

/// A session of our client library, with its store in a file or in memory.
actor SessionMember: EnduringMember {
    nonisolated let name: String
    nonisolated let user: Int
    private let address: String
    private let token: String
    private let place: StoreLocation
    private let settings: Endurance.Settings
    private let tally: EnduranceTally
    private var random: SeededRandom
    private var session: Session
    private var buckets = [Bucket]()

    init(
        number: Int, user: Int, port: UInt16, token: String, place: StoreLocation, settings: Endurance.Settings,
        tally: EnduranceTally
    ) async throws {
        name = if case .file = place { "session-\(number) (file)" } else { "session-\(number) (memory)" }
        self.user = user
        address = "http://127.0.0.1:\(port)"
        (self.token, self.place, self.settings, self.tally) = (token, place, settings, tally)
        random = SeededRandom(seed: settings.seed &+ UInt64(number))
        session = try await Thicket.connect(server: address, app: Endurance.app, token: token, store: place)
        for bucket in Endurance.buckets { buckets.append(try await session.bucket(bucket)) }
    }

    func live() async {
        while tally.isRunning {
            do {
                if random.next() % 400 == 0 { try await goAway() }
                try await editOnce()
            } catch {
                tally.fault("\(name): \(error)")
                return
            }
            await tally.sleep(milliseconds: Int.random(in: settings.pauseMilliseconds, using: &random))
        }
    }

    /// Another member's edit may arrive between reading and editing: then nothing is edited.
    private func editOnce() async throws {
        do {
            try await edit()
            tally.edited()
        } catch {
            guard (error as? ClientError)?.code == .misfit else { throw error }
        }
    }

    private func edit() async throws {
        let isNotes = random.next() % 2 == 0
        let bucket = buckets[isNotes ? 0 : 1]
        let key = EnduringKeys.any(&random)
        guard let object = try await bucket.get(key) else {
            return try await bucket.set(key, to: ["t": "begin ", "n": 0, "by": .string(name)])
        }
        switch random.next() % 16 {
        case 0: try await bucket.remove(key)
        case 1...5:
            let value = JSONValue.number(JSONNumber(Int64(random.next() % 1_000_000)))
            try await bucket.update(key) { object in object?["n"] = value }
        default:
            guard let text = object["t"]?.stringValue else {
                return try await bucket.update(key) { object in object?["t"] = "again " }
            }
            let length = text.utf16.count
            let place = Int.random(in: 0...length, using: &random)
            // Typed text is deleted again at some time, or texts would grow for ever.
            let isLong = length > EnduringKeys.textMax
            try await bucket.editText(
                key, path: ["t"], at: isLong ? 0 : place, deleting: isLong ? length * 3 / 4 : 0,
                inserting: "w\(random.next() % 1_000) ")
        }
    }

    /// Continues to edit without a connection, or closes its file and opens it again.
    private func goAway() async throws {
        tally.absences.add(1, ordering: .relaxed)
        let seconds = Double.random(in: 0...settings.awaySeconds, using: &random)
        if case .file = place, random.next() % 2 == 0 {
            await session.close()
            await tally.pause(seconds: seconds)
            session = try await Thicket.connect(server: address, app: Endurance.app, token: token, store: place)
            buckets = []
            for bucket in Endurance.buckets { buckets.append(try await session.bucket(bucket)) }
            return
        }
        await session.goOffline()
        let count = Int.random(in: 0...8, using: &random)
        for _ in 0..<count { try await editOnce() }
        await tally.pause(seconds: seconds)
        await session.goOnline()
    }

    func settle() async throws {
        await session.goOnline()
        for bucket in buckets {
            if try await isRefused(bucket) {
                try await giveUpRefused(bucket)
                if try await isRefused(bucket) { throw ProcessError("refused again in \(bucket.name)") }
            }
        }
    }

    /// Waits for a bucket; true if the server refuses some of its edits.
    private func isRefused(_ bucket: Bucket) async throws -> Bool {
        do {
            try await bucket.waitUntilSynced(timeout: .seconds(90))
            return false
        } catch {
            guard error.code == .refused else { throw error }
            return true
        }
    }

    private func giveUpRefused(_ bucket: Bucket) async throws {
        for key in try await bucket.keys() {
            let info = try await bucket.info(key)
            guard info.refusal != nil else { continue }
            tally.refusals.add(1, ordering: .relaxed)
            _ = try await bucket.discardRefused(key)
        }
    }

    func content(of name: String) async throws -> [String: String]? {
        guard let bucket = buckets.first(where: { $0.name.utf8.elementsEqual(name.utf8) }) else { return nil }
        var content = [String: String]()
        for key in try await bucket.keys() {
            guard let object = try await bucket.get(key) else { continue }
            content[key] = "\(try await bucket.info(key).version) \(JSONValue.object(object).serializedText)"
        }
        return content
    }

    func leave() async { await session.close() }
}

/// The objects that all members share: any number over the hours, but a bounded number of names.
enum EnduringKeys {
    /// Code units from which a text is shortened.
    static let textMax = 2_000

    static func any(_ random: inout SeededRandom) -> String {
        random.next() % 3 == 0 ? "shared-\(random.next() % 4)" : "object-\(random.next() % 120)"
    }
}
