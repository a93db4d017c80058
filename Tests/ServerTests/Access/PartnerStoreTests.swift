import Glibc
import Testing
import ThicketAuth
import ThicketCrypto
@testable import ThicketPlatform
import ThicketProtocol

@testable import ThicketServer

/// The partners' file, shared with an operator's command in another process (here: another connection).
@Suite("Partner directory")
final class PartnerStoreTests {
    private let folder = "/tmp/thicket-partners-\(getpid())-\(RandomBytes.hex(6))"
    private var path: String { folder + "/thicket.db" }
    private let key: ServerKey
    private let admin: PartnerAdmin
    private let store: PartnerStore

    init() throws {
        mkdir(folder, 0o700)
        key = try .load(folder + "/server.key")
        admin = try PartnerAdmin(path: folder + "/thicket.db", key: key)
        store = try PartnerStore(path: folder + "/thicket.db", key: key)
    }

    deinit {
        for name: String in ["/thicket.db", "/thicket.db-wal", "/thicket.db-shm", "/server.key", "/short", ""] {
            remove(folder + name)
        }
    }

    @Test("a new partner is found at once, and only by its exact API key")
    func create() throws {
        let first = try admin.create(id: nil, now: 1)
        let second = try admin.create(id: nil, now: 2)
        #expect(first.id == "1000")
        #expect(second.id == "1001")
        #expect(try store.partner(apiKey: first.apiKey) == Partner(id: "1000", authKeys: [Array(first.authKey.utf8)]))
        #expect(try store.partner(apiKey: second.apiKey)?.id == "1001")
        #expect(try store.partner(apiKey: first.apiKey.uppercased()) == nil)
        #expect(try store.partner(apiKey: "") == nil)
        #expect(first.authKey.utf8.count == 88)
    }

    @Test("no key of a partner is in clear in the database file or its write-ahead log")
    func sealed() throws {
        let made = try admin.create(id: "77", now: 1)
        let bytes: [UInt8] =
            (FileText.readBytes(path, bytesMax: 1 << 24) ?? [])
            + (FileText.readBytes(path + "-wal", bytesMax: 1 << 26) ?? [])
        #expect(bytes.count > 4_096)
        let text = String(decoding: bytes, as: Unicode.ASCII.self)
        #expect(!text.contains(made.authKey))
        #expect(!text.contains(made.apiKey))
        #expect(text.contains("77"))
    }

    @Test("two auth keys are valid during a rotation; a third replaces the oldest, and finishing leaves one")
    func rotation() throws {
        let made = try admin.create(id: nil, now: 1)
        let keys: () throws -> [String] = { [store] in
            try store.partner(apiKey: made.apiKey)?.authKeys.map { String(decoding: $0, as: UTF8.self) } ?? []
        }
        #expect(try keys() == [made.authKey])
        let second: String = try admin.rotate(id: made.id, authKey: nil, now: 2)
        #expect(try keys() == [second, made.authKey])
        let third: String = try admin.rotate(id: made.id, authKey: String(repeating: "x", count: 64), now: 3)
        #expect(try keys() == [third, second])
        #expect(try admin.dropOld(id: made.id) == 1)
        #expect(try keys() == [third])
        #expect(try admin.dropOld(id: made.id) == 0)
        #expect(try keys() == [third])
    }

    /// The error that refused the call; nil if it succeeded.
    private func refusal(_ body: () throws -> Void) -> PartnerAdminError? {
        do {
            try body()
            return nil
        } catch {
            return error as? PartnerAdminError
        }
    }

    @Test("a disabled partner is found as disabled until it is enabled again")
    func disabled() throws {
        let made = try admin.create(id: nil, now: 1)
        try admin.setEnabled(false, id: made.id)
        #expect(try store.partner(apiKey: made.apiKey)?.isEnabled == false)
        try admin.setEnabled(true, id: made.id)
        #expect(try store.partner(apiKey: made.apiKey)?.isEnabled == true)
    }

    @Test("invalid, duplicate and unknown partners are refused with the reason, and nothing is stored")
    func refusals() throws {
        let good = String(repeating: "k", count: 64)
        try admin.add(id: "12", apiKey: "0123-abcd", authKey: good, now: 1)
        #expect(refusal { try admin.add(id: "12", apiKey: "other-key", authKey: good, now: 1) } == .partnerTaken("12"))
        #expect(refusal { try admin.add(id: "13", apiKey: "0123-abcd", authKey: good, now: 1) } == .apiKeyTaken)
        for id: String in ["", "0", "012", "1234567890", "x", "1 ", "-1", "١"] {
            #expect(refusal { try admin.add(id: id, apiKey: "another-key", authKey: good, now: 1) } == .badID)
        }
        for apiKey: String in ["", "short", "white space", String(repeating: "a", count: 65), "' OR 1=1 --"] {
            #expect(refusal { try admin.add(id: "14", apiKey: apiKey, authKey: good, now: 1) } == .badAPIKey)
        }
        #expect(
            refusal {
                try admin.add(id: "14", apiKey: "another-key", authKey: String(repeating: "k", count: 63), now: 1)
            } == .badAuthKey(bytes: 63))
        #expect(refusal { _ = try admin.rotate(id: "99", authKey: nil, now: 1) } == .unknownPartner("99"))
        #expect(refusal { try admin.setEnabled(false, id: "99") } == .unknownPartner("99"))
        #expect(try admin.list().map(\.id) == ["12"])
    }

    @Test("a user keeps its id, partners do not share users, and canonically equal names are two users")
    func users() throws {
        let first: Entity = try store.register(partner: "1", partnerEntity: "u", email: "a@b", newID: "e1", now: 1)
        #expect(try store.register(partner: "1", partnerEntity: "u", email: "c@d", newID: "e2", now: 2) == first)
        #expect(try store.register(partner: "2", partnerEntity: "u", email: "a@b", newID: "e3", now: 2).id == "e3")
        let names: [String] = ["\u{E9}", "e\u{301}"]
        let ids: [String] = try names.enumerated().map { place, name in
            try store.register(partner: "1", partnerEntity: name, email: "a@b", newID: "n\(place)", now: 3).id
        }
        #expect(ids == ["n0", "n1"])
        #expect(try store.entity("e1") == first)
        #expect(try store.entity("e2") == nil)
    }

    @Test("devices are remembered up to a bound; the one seen longest ago is dropped first")
    func devices() throws {
        for place: Int in 0..<(PartnerStore.devicesPerUserMax + 3) {
            try store.saw(device: "d\(place)", of: "e", now: Double(place))
        }
        try store.saw(device: "x", of: "other", now: 0)
        #expect(try store.devices(of: "e").count == PartnerStore.devicesPerUserMax)
        #expect(try store.devices(of: "e").first?.id == "d66")
        #expect(try store.devices(of: "e").contains { $0.id == "d0" } == false)
        #expect(try store.devices(of: "other").map(\.id) == ["x"])
    }

    @Test("a denied token stays denied until it expires and is then removed from the file")
    func denied() throws {
        try store.deny([DeniedToken(hash: [1], until: 100), DeniedToken(hash: [2], until: 200)], now: 50)
        #expect(try store.isDenied([1]) && store.isDenied([2]))
        try store.deny([DeniedToken(hash: [3], until: 300)], now: 100)
        #expect(try store.isDenied([1]) == false)
        #expect(try store.isDenied([2]) && store.isDenied([3]))
        #expect(try PartnerStore(path: path, key: key).isDenied([3]))
    }

    @Test("each disabling of a partner is reported once")
    func disabledPartners() throws {
        let (first, second) = (try admin.create(id: nil, now: 1), try admin.create(id: nil, now: 1))
        #expect(try store.disabledPartners() == [])
        try admin.setEnabled(false, id: second.id)
        #expect(try store.disabledPartners() == [second.id])
        #expect(try store.disabledPartners() == [])
        try admin.setEnabled(true, id: second.id)
        try admin.setEnabled(false, id: first.id)
        #expect(try store.partner(apiKey: first.apiKey)?.isEnabled == false)
        #expect(try store.disabledPartners() == [first.id])
    }

    @Test("an app leads to its partner; an app without a partner and an unknown app lead to none")
    func apps() throws {
        let made = try admin.create(id: nil, now: 1)
        let apps = try StoreAdmin(path: path)
        _ = try apps.createApp(try AppID("Mine"), partner: made.id, now: 1)
        _ = try apps.createApp(try AppID("free"), now: 1)
        #expect(try store.partner(ofApp: AppID("mine").text)?.id == made.id)
        #expect(try store.partner(ofApp: "free") == nil)
        #expect(try store.partner(ofApp: "unknown") == nil)
    }

    @Test("the key file has mode 0600 and is reused; a group-readable or short key file is refused")
    func keyFile() throws {
        var info = stat()
        #expect(stat(folder + "/server.key", &info) == 0)
        #expect(info.st_mode & 0o777 == 0o600)
        let sealed: [UInt8] = key.seal([1, 2, 3], of: "a")
        #expect(try ServerKey.load(folder + "/server.key").open(sealed, of: "a") == [1, 2, 3])
        #expect(key.open(sealed, of: "b") == nil)
        chmod(folder + "/server.key", 0o640)
        #expect((try? ServerKey.load(folder + "/server.key")) == nil)
        let file: Int32 = open(folder + "/short", O_CREAT | O_WRONLY, 0o600)
        #expect(write(file, "short", 5) == 5)
        close(file)
        #expect((try? ServerKey.load(folder + "/short")) == nil)
    }

    @Test("a sealed value has the form nonce, AES-256-GCM, tag, as another implementation makes it")
    func form() throws {
        let sealed: [UInt8] = try #require(
            Hex.decode("000102030405060708090a0bf4ff4f4aad3136520c6283936d53bd93485e0f"))
        let key = ServerKey(Array(0..<32))
        #expect(key.open(sealed, of: "a") == [1, 2, 3])
        for count: Int in [0, 11, 12, 27, 28, 30] { #expect(key.open(Array(sealed.prefix(count)), of: "a") == nil) }
    }

    @Test("with another key file no partner is admitted and no secret is readable")
    func otherKey() throws {
        let made = try admin.create(id: nil, now: 1)
        let other = ServerKey(RandomBytes.make(32))
        let outsider = try PartnerStore(path: path, key: other)
        #expect(try outsider.partner(apiKey: made.apiKey) == nil)
        #expect(try PartnerAdmin(path: path, key: other).list().map(\.apiKey) == [nil])
    }
}
