/// One process per data folder serves the sync protocol.
public enum ThicketServer {
    /// What `thicketd version` prints.
    public static let version: String = "0.1.0"
}
