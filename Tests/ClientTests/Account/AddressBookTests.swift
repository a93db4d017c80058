import Testing
import ThicketClient
import ThicketProtocol
import ThicketTestServer

@Suite("The address book of a session", .serialized, .timeLimit(.minutes(15)))
struct AddressBookTests {
    private let bench: AccountServer
    private let user: AccountServer.Registered

    init() throws {
        bench = try AccountServer()
        user = try bench.register()
    }

    private func session(_ device: String, seconds: Int64, _ source: TestSource?) async throws -> ClientSession {
        try await bench.app(device: device).createSession(
            accessToken: bench.login(user, seconds: seconds, device: device), entityId: user.entity,
            partnerId: bench.partner, tokens: source)
    }

    @Test("an address added on one device is read on another whose token ended: one renewal, nothing is missing")
    func renewal() async throws {
        let source = TestSource { [bench, user] _ in bench.login(user, seconds: 60) }
        source.shut()
        let one = try await session("d/1", seconds: 60, source)
        let two = try await session("d/2", seconds: 1_800, nil)
        let home = Address(fullName: "Ada Oak", line1: "1 Forest Road", city: "Bath")
        try await one.addressBook.save(home)
        #expect(try await one.addressBook.getAll() == [home])
        #expect(try await two.addressBook.getAll() == [home])
        bench.pass(60)
        await source.asked(1)
        let work = Address(fullName: "Ada Ash", line1: "2 Mill Lane", city: "Ely", zip: "CB7")
        try await two.addressBook.save(work)
        let written = try await two.bucket(AddressBook.bucketName)
        try await written.waitUntilSynced(timeout: .seconds(120))
        let all = Task { try await one.addressBook.getAll() }
        source.open()
        #expect(try await all.value == [work, home])
        #expect(source.count == 1)
        await one.close()
        await two.close()
    }

    @Test("a save keeps an object's other members, an object that is not an address hides none, a delete removes")
    func objects() async throws {
        let session = try await session("d/1", seconds: 600, nil)
        let bucket = try await session.bucket(AddressBook.bucketName)
        try await bucket.set("a", to: ["id": "a", "fullName": "Ann", "line1": "x", "note": "ring twice"])
        try await bucket.set("odd", to: ["fullName": 7])
        var ann = try #require(try await session.addressBook.get("a"))
        #expect(ann.city.isEmpty)
        ann.city = "Bath"
        try await session.addressBook.save(ann)
        #expect(try await bucket.get("a")?["note"] == "ring twice")
        #expect(try await session.addressBook.getAll() == [ann])
        try await session.addressBook.delete("a")
        #expect(try await session.addressBook.getAll().isEmpty)
        await session.close()
    }

    @Test("the address book is readable offline; after sign-out it fails with 401")
    func offline() async throws {
        let session = try await session("d/1", seconds: 600, nil)
        let home = Address(fullName: "Ada Oak", line1: "1 Forest Road", city: "Bath")
        try await session.addressBook.save(home)
        #expect(try await session.addressBook.getAll() == [home])
        await session.sync.goOffline()
        #expect(try await session.addressBook.getAll() == [home])
        await session.signOut()
        let error = await #expect(throws: ClientError.self) { try await session.addressBook.getAll() }
        #expect(error?.code == .unauthorized && error?.number == 401)
        await session.close()
    }
}
