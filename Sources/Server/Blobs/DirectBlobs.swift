import ThicketNet
import ThicketProtocol

/// Does requests about blobs in the calling thread, each to its end before the next one: the blob workers of a model of
/// the server, for the simulation and the sweeps.
package final class DirectBlobs {
    /// An answer, with the bytes that follow it.
    package struct Answer: Sendable {
        /// The head, with its own body if the answer has one.
        package let response: HTTPResponse
        /// The bytes of a blob that is read.
        package let content: [UInt8]
    }

    /// Bytes of a body that are written at once.
    private static let pieceBytes = 256 << 10

    private let service: BlobService
    private let quota: BlobQuota

    /// - Parameters:
    ///   - ledger: used by the calling thread only.
    ///   - random: returns the given number of bytes, for ids.
    package init(
        ledger: any BlobLedger, blobs: any BlobStore, limits: ServerLimits = .init(), metrics: Metrics = .init(),
        random: @escaping (Int) -> [UInt8]
    ) {
        service = BlobService(ledger: ledger, store: blobs, metrics: metrics, log: .silent, random: random)
        quota = BlobQuota(limits)
    }

    /// Reads a request of a user whose token is not looked at.
    /// - Returns: nil for a request that is not about blobs, or is refused without a look at the store.
    package static func order(_ request: WholeRequest, of app: AppID, _ user: UserID) -> BlobOrder? {
        let handler = BlobHandler(cors: CORSPolicy("none"))
        guard case .call(let call) = handler.read(request.head, length: request.content?.count),
            case .blob(let blob) = call.operation
        else { return nil }
        return BlobOrder(call: blob, app: app, user: user)
    }

    /// Does what the request asks for.
    /// - Parameters:
    ///   - body: the bytes of a blob or part, whole.
    ///   - now: milliseconds since 1970.
    package func answer(_ order: BlobOrder, body: [UInt8] = [], now: Int64) -> Answer {
        let transfer = BlobTransfer(
            ConnectionID(slot: 0, serial: 0), tenant: 0, order, quota: quota, sendsFiles: false)
        do throws(StoreError) {
            switch try service.begin(transfer, now: now) {
            case .respond(let response): return Answer(response: response, content: [])
            case .accept: return Answer(response: try receive(body, transfer, now: now), content: [])
            case .download(let head): return Answer(response: head, content: try content(transfer))
            }
        } catch {
            service.ended(transfer)
            return Answer(response: BlobAnswer.of(error), content: [])
        }
    }

    private func receive(_ body: [UInt8], _ transfer: BlobTransfer, now: Int64) throws(StoreError) -> HTTPResponse {
        var start = 0
        while start < body.count {
            let end = min(start + Self.pieceBytes, body.count)
            let step = try service.received(Array(body[start..<end]), isLast: end == body.count, transfer, now: now)
            if case .respond(let response)? = step { return response }
            start = end
        }
        // The connection ended before the body did.
        service.ended(transfer)
        return BlobAnswer.failed
    }

    private func content(_ transfer: BlobTransfer) throws(StoreError) -> [UInt8] {
        var content = [UInt8]()
        while case .bytes(let bytes)? = try service.next(transfer) { content += bytes }
        return content
    }
}
