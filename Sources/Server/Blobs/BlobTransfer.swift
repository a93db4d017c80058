import ThicketCrypto
import ThicketNet
import ThicketProtocol
import ThicketScheduling

/// A request about blobs in progress.
///
/// `@unchecked`: what can change belongs to the blob worker that has the transfer's work; the queue gives the work of
/// one user to one worker at a time, in order.
final class BlobTransfer: @unchecked Sendable {
    /// The connection of the request, to which the answer goes.
    let connection: ConnectionID
    let tenant: TenantID
    let order: BlobOrder
    let quota: BlobQuota
    /// Whether pieces of files can be sent to the connection.
    let sendsFiles: Bool

    /// The body that is being received.
    var upload: Receiving?
    /// The bytes that are being sent.
    var download: Sending?

    /// A body on its way to the blob store.
    struct Receiving {
        let part: BlobPart
        /// nil for a part that was received before: its bytes are only compared.
        let writer: (any BlobPartWriter)?
        var hash = SHA256()
        /// The upload that is completed after this part.
        var whole: BlobUpload?
    }

    struct Sending {
        let reader: any BlobReader
        /// What was not handed over yet.
        var bytes: Range<Int64>
    }

    init(_ connection: ConnectionID, tenant: TenantID, _ order: BlobOrder, quota: BlobQuota, sendsFiles: Bool) {
        (self.connection, self.tenant, self.order) = (connection, tenant, order)
        (self.quota, self.sendsFiles) = (quota, sendsFiles)
    }
}

extension BlobQuota {
    /// - Parameter guest: bytes that a guest may have; nil for any other account.
    init(_ limits: ServerLimits, guest: Int64? = nil) {
        self.init(
            userBytesMax: min(Int64(limits.blobUserMax), guest ?? .max), appBytesMax: Int64(limits.blobAppMax),
            uploadsMax: limits.blobUploadsMax)
    }
}
