package import ThicketProtocol

/// Removals as the server lists them.
package struct RemovalList: Sendable, Equatable {
    package struct Entry: Sendable, Equatable {
        /// The server's key.
        package let key: EntityKey
        /// The app's key; nil for an object of a sealed bucket that this copy has never held.
        package let name: String?
        /// The version that the removal created.
        package let version: Version
        /// Milliseconds since 1970 by the server's clock; nil: the server no longer knows.
        package let timestamp: Int64?
    }

    /// The scope of the request, with the server's key.
    package let scope: RemovedRequest.Scope
    package let entries: [Entry]
    /// The key after which the next page begins; nil on the last page.
    package let mark: String?
}
