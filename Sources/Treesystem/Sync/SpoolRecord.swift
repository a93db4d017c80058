package import ThicketTree
package import ThicketTreeShape

/// What is stored beside an operation whose content is in a spool file: the plan, from which the record is made, and
/// how far the upload is. It contains the key of the content.
package struct SpoolRecord: Sendable {
    package let plan: ContentSpool
    /// The complete blob.
    package var blob: BlobID?
    /// The state of the upload, as `Uploader` saved it.
    package var upload: [UInt8]
    /// Whether a record at the server had the content: this device has its file only if the cache has it, and the plan
    /// is kept without the file, because no record may have the key any more.
    package let wasConfirmed: Bool

    package init(_ plan: ContentSpool, blob: BlobID? = nil, upload: [UInt8] = [], wasConfirmed: Bool = false) {
        (self.plan, self.blob, self.upload, self.wasConfirmed) = (plan, blob, upload, wasConfirmed)
    }

    /// Plan, one byte (bit 0: a blob follows; bit 1: `wasConfirmed`), the blob, the upload's state.
    package var octets: [UInt8] {
        plan.octets + [(blob == nil ? 0 : 1) | (wasConfirmed ? 2 : 0)] + (blob?.octets ?? []) + upload
    }

    /// - Returns: nil for bytes that are not one.
    package init?(octets: [UInt8]) {
        guard let plan = ContentSpool(octets: octets.prefix(ContentSpool.octetsCount)) else { return nil }
        var rest = octets.dropFirst(ContentSpool.octetsCount)
        guard let flag = rest.popFirst(), flag <= 3 else { return nil }
        var blob: BlobID?
        if flag & 1 == 1 {
            guard let id = BlobID(octets: rest.prefix(BlobID.bytesCount)) else { return nil }
            blob = id
            rest = rest.dropFirst(BlobID.bytesCount)
        }
        self.init(plan, blob: blob, upload: Array(rest), wasConfirmed: flag & 2 == 2)
    }
}
