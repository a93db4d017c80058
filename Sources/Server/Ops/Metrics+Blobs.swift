import ThicketPlatform

extension Metrics {
    /// Why a request about blobs was refused.
    public enum BlobRefusal: String, MetricLabel {
        /// The blob, upload or node does not exist, or is not the user's.
        case missing
        /// A record refers to the blob, and its bytes are not in the store any more.
        case lost
        /// The body has another hash than its header states, or the parts have another one than the client.
        case hash
        /// The request is not valid: number, length or range.
        case request
        /// The upload is not in the state that the request needs.
        case state
        /// The quota of the user or of the app.
        case quota
        /// Too many requests are in progress.
        case busy
        /// The disk is full or fails.
        case storage
    }

    /// What a sweep of blobs removes.
    public enum BlobRemains: String, MetricLabel {
        /// Blobs that no node refers to.
        case orphan
        /// Files of removed blobs.
        case file
        /// Uploads whose time is over.
        case upload
        /// Files and uploads that the database does not know.
        case unknown
    }
}
