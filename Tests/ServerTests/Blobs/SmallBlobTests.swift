import Glibc
import Testing
import ThicketCrypto
import ThicketNet
import ThicketProtocol
import ThicketTestSupport
import ThicketTreeShape

@testable import ThicketServer

@Suite("A blob in one request")
struct SmallBlobTests {
    @Test(
        "an upload that no client knows is given up when its bytes cannot be stored, and counts for no quota",
        arguments: [FileCall.create, .sync, .move, .write])
    func failing(call: FileCall) throws {
        let (folder, faults) = (BlobFolder(), Faults<FileCall>())
        var settings: StoreSettings = .testing
        settings.fileFault = { call, _ in faults.isFailing(call) ? ENOSPC : 0 }
        let store: SQLiteStore = try folder.open()
        let ledger = try store.makeBlobLedger()
        let service = BlobService(
            ledger: ledger, store: folder.blobs(settings), metrics: Metrics(), log: .silent, random: RandomBytes.make)
        let bytes = [UInt8](repeating: 7, count: 1_000)
        let user = try UserID("ann@example.com")
        let order = BlobOrder(
            call: BlobCall(action: .small(length: bytes.count, sha256: Hash.sha256(bytes))), app: try AppID("app"),
            user: user)
        func transfer() -> BlobTransfer {
            BlobTransfer(
                ConnectionID(slot: 1, serial: 1), tenant: 1, order,
                quota: BlobQuota(userBytesMax: 1_000, appBytesMax: 1_000, uploadsMax: 1), sendsFiles: false)
        }
        let failing = transfer()
        guard case .accept = try service.begin(failing, now: 1) else { throw Unexpected() }
        faults.fail(call)
        #expect(throws: StoreError.self) { try service.received(bytes, isLast: true, failing, now: 2) }
        // The disk has space again when the worker ends the request.
        faults.fail()
        service.ended(failing)
        #expect(folder.files.isEmpty)
        let second = transfer()
        guard case .accept = try service.begin(second, now: 3) else { throw Unexpected() }
        guard case .respond(let answer)? = try service.received(bytes, isLast: true, second, now: 4) else {
            throw Unexpected()
        }
        #expect(answer.status == 200)
    }

    private struct Unexpected: Error {}
}
