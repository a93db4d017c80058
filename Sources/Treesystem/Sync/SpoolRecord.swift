import ThicketTree
import ThicketTreeShape

/// What is stored beside an operation whose content is in a spool file: the plan, from which the record is made, and
/// how far the upload is. It contains the key of the content.
struct SpoolRecord: Sendable {
    let plan: ContentSpool
    /// The complete blob.
    var blob: BlobID?
    /// The state of the upload, as `Uploader` saved it.
    var upload: [UInt8]

    init(_ plan: ContentSpool, blob: BlobID? = nil, upload: [UInt8] = []) {
        (self.plan, self.blob, self.upload) = (plan, blob, upload)
    }

    /// Plan, one byte whether a blob follows, the blob, the upload's state.
    var octets: [UInt8] { plan.octets + [blob == nil ? 0 : 1] + (blob?.octets ?? []) + upload }

    /// - Returns: nil for bytes that are not one.
    init?(octets: [UInt8]) {
        guard let plan = ContentSpool(octets: octets.prefix(ContentSpool.octetsCount)) else { return nil }
        var rest = octets.dropFirst(ContentSpool.octetsCount)
        guard let flag = rest.popFirst(), flag <= 1 else { return nil }
        var blob: BlobID?
        if flag == 1 {
            guard let id = BlobID(octets: rest.prefix(BlobID.bytesCount)) else { return nil }
            blob = id
            rest = rest.dropFirst(BlobID.bytesCount)
        }
        self.init(plan, blob: blob, upload: Array(rest))
    }
}
